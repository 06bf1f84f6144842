"""MarketHub's own HTTP API: one call brings one task of a shop, or twenty thousand."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from attention_queue import AttentionQueueError, Resource, WorkMessage
from markethub.hub import Task, queue

MAX_BODY = 16 * 1024 * 1024  # bytes
Publish = Callable[[Sequence[WorkMessage]], Awaitable[object]]
read_tasks = msgspec.json.Decoder(Task | list[Task]).decode


def api(publish: Publish) -> Starlette:
    """``POST /shops/{tenant}/{id}/tasks``: 202 when all of it is on the disk.

    422: none of it is; the error says where the fault is. 503: send the same ids again.
    """

    async def accept(request: Request) -> JSONResponse:
        body = b""
        async for chunk in request.stream():
            if len(body := body + chunk) > MAX_BODY:
                return JSONResponse({"error": f"more than {MAX_BODY} bytes"}, 413)
        try:
            tasks, shop = read_tasks(body), Resource(**request.path_params)
            tasks = tasks if isinstance(tasks, list) else [tasks]
            await publish([queue.message(shop, type_of(task), task, id=task.id) for task in tasks])
        except msgspec.DecodeError as error:
            return JSONResponse({"error": str(error)}, 422)
        except AttentionQueueError as error:
            return JSONResponse({"error": str(error)}, 503 if error.retryable else 422)
        return JSONResponse({"accepted": len(tasks)}, 202)

    return Starlette(routes=[Route("/shops/{tenant}/{id}/tasks", accept, methods=["POST"])])


def type_of(task: Task) -> str:
    return str(task.__struct_config__.tag)


@asynccontextmanager
async def serving(publish: Publish) -> AsyncIterator[int]:
    """The API, on the loopback port that is yielded, for as long as the block runs."""
    server = uvicorn.Server(uvicorn.Config(api(publish), log_level="warning", lifespan="off"))
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as door:
        door.bind(("127.0.0.1", 0))
        door.listen()
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[door]))
            yield door.getsockname()[1]
            server.should_exit = True
