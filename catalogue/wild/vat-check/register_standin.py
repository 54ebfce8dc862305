"""Stands in for the tax office's VAT register, which works on so many enquiries of one client at once."""
import argparse
import asyncio

from aiohttp import web

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--sessions", type=int, required=True)
parser.add_argument("--seconds", type=float, required=True)
options = parser.parse_args()
sessions = asyncio.Semaphore(options.sessions)


async def enquiry(request):
    async with sessions:
        await asyncio.sleep(options.seconds)
    number = request.match_info["number"]
    return web.json_response({"vatNumber": number, "valid": True, "name": "MUSTER GMBH", "requestId": f"WAPI{id(request):x}"})


app = web.Application()
app.router.add_get("/rest/{country:[A-Z][A-Z]}/{number}", enquiry)
web.run_app(app, host="127.0.0.1", port=options.port, access_log=None, print=None)
