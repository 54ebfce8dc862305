import json
import logging
import os
import sys
from pathlib import Path

from mooring.desk import Desk
from mooring.web import make_server

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
config = json.loads((Path("conf") / f"{os.environ.get('VARIANT', 'mended')}.json").read_text())
server = make_server(int(sys.argv[1]), Desk(config), config["backlog"])
logging.getLogger("mooring").info("serving on %s", sys.argv[1])
server.serve_forever()
