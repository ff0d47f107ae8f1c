"""A WebSocket server by Debian's `websockets`, which sends back what it gets."""

import asyncio

from websockets.server import serve


async def echo(socket):
    async for message in socket:
        await socket.send(message)


async def main():
    async with serve(echo, "127.0.0.1", 0, max_size=None) as server:
        print("PORT", server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Future()


asyncio.run(main())
