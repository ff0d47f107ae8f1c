"""A WebSocket client by Debian's `websockets`: texts and bytes there and back, a ping, a close."""

import asyncio
import sys

from websockets.client import connect


async def main():
    async with asyncio.timeout(20), connect(sys.argv[1], max_size=None) as socket:
        for message in ["one", "two", b"y" * (4 << 20)]:
            await socket.send(message)
            assert await socket.recv() == message
        await (await socket.ping())
        await socket.close(1000, "done")
        assert socket.close_code == 1000, socket.close_code


asyncio.run(main())
