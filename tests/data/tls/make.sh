#!/bin/sh
# Makes the certificates of this folder anew, each with its key, of a CA whose key is thrown away.
# They hold from 2020 to 2120, `expired` until 2021. `alone` is of no CA but itself, `below` of `middle`, which is
# no root.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
cd "$work"
mkdir new
: > index.txt
echo 01 > serial
cat > ca.cnf <<'END'
[ca]
default_ca = test
[test]
database = index.txt
serial = serial
new_certs_dir = new
certificate = ca.pem
private_key = ca.key
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
[req]
distinguished_name = name
[name]
[root]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign
subjectKeyIdentifier = hash
[server]
basicConstraints = CA:FALSE
extendedKeyUsage = serverAuth
subjectAltName = IP:127.0.0.1,IP:::1,DNS:localhost
[elsewhere]
basicConstraints = CA:FALSE
extendedKeyUsage = serverAuth
subjectAltName = DNS:elsewhere.test
[client]
basicConstraints = CA:FALSE
extendedKeyUsage = clientAuth
END

key() {
    openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:prime256v1 -out "$1.key"
    openssl req -new -config ca.cnf -key "$1.key" -subj "/CN=$1" -out "$1.csr"
}

sign() { # name, extensions, end, what signs
    openssl ca -batch -notext -config ca.cnf -in "$1.csr" -out "$1.crt" -extensions "$2" \
        -startdate 20200101000000Z -enddate "$3" $4
}

key ca
sign ca root 21200101000000Z "-selfsign -keyfile ca.key"
cp ca.crt ca.pem
cp ca.pem "$here/ca.pem"
for leaf in "server server 21200101000000Z" "elsewhere elsewhere 21200101000000Z" \
    "expired server 20210101000000Z" "client client 21200101000000Z"; do
    set -- $leaf
    key "$1"
    sign "$1" "$2" "$3" ""
    cat "$1.crt" "$1.key" > "$here/$1.pem"
done
key middle
sign middle root 21200101000000Z ""
cp middle.crt "$here/middle.pem"
key below
sign below server 21200101000000Z "-cert middle.crt -keyfile middle.key"
cat below.crt below.key > "$here/below.pem"
key alone
sign alone server 21200101000000Z "-selfsign -keyfile alone.key"
cat alone.crt alone.key > "$here/alone.pem"
