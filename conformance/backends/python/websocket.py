"""A WebSocket server by `websockets`, which answers nothing else than /ws."""

import asyncio

from websockets.asyncio.server import serve


async def echo(socket):
    async for message in socket:
        await socket.send(message)


async def main():
    async with serve(echo, "127.0.0.1", 0) as server:
        print("PORT", server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Future()


asyncio.run(main())
