#!/usr/bin/env bash
# Brings what the tests of table formats need: jars in FOLDER for the Spark of PROFILE (see pom.xml), and a PostgreSQL.
# Maven and PostgreSQL are installed from Debian's packages if the machine has none.
set -eu
profile=$1 folder=$2
here=$(cd "$(dirname "$0")" && pwd)
packages=
command -v mvn >/dev/null || packages="$packages maven"
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || packages="$packages postgresql"
if [ -n "$packages" ]; then
  echo "Installing$packages ..."
  apt-get update -qq
  # The server that the package would start is not wanted: the tests have one of their own.
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null
fi
if ! [ "$folder/.ready" -nt "$here/pom.xml" ]; then
  rm -rf "$folder"
  mvn -q -B -f "$here/pom.xml" -P "$profile" dependency:copy-dependencies -DincludeScope=runtime \
    -DincludeGroupIds=io.delta,io.unitycatalog,org.apache.iceberg,org.postgresql -DoutputDirectory="$folder"
  touch "$folder/.ready"
fi
