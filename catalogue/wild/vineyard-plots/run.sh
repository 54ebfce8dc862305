#!/bin/bash
sed -e "s#@TMP@#$TMPDIR#" -e "s#@PORT@#$PORT#" -e "s#@APP@#$((PORT + 1))#" nginx.conf.in > "$TMPDIR/nginx.conf"
python sensors.py &
python app.py &
until (exec 3<>"/dev/tcp/127.0.0.1/$((PORT + 1))" && exec 4<>"/dev/tcp/127.0.0.1/$((PORT + 2))") 2>/dev/null; do sleep 0.1; done
nginx -p "$TMPDIR" -e stderr -c "$TMPDIR/nginx.conf" &
wait
