set -e
sed -e "s#@TMP@#$TMPDIR#g" -e "s#@PORT@#$PORT#g" -e "s#@APP@#$((PORT + 1))#g" nginx.conf > "$TMPDIR/nginx.conf"
python outside.py &
gunicorn -c gunicorn.conf.py app:app &
nginx -e "$TMPDIR/nginx-error.log" -c "$TMPDIR/nginx.conf" &
wait
