"""An application whose UI only "anna" may see: `ui_users_program.py FOLDER PORT JAR`. It keeps codes and answers."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

import pyjoinopt
from tests.sessions.test_ui_users import answers

FOLDER, PORT, JAR = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
builder = (
    SparkSession.builder.config("spark.ui.enabled", "true").config("spark.ui.port", str(PORT))
    .config("spark.driver.extraClassPath", JAR).config("spark.ui.filters", "users.ByHeader")
    .config("spark.acls.enable", "true").config("spark.ui.view.acls", "anna")
    .config("spark.ui.showConsoleProgress", "false").config("spark.eventLog.enabled", "true")
    .config("spark.eventLog.dir", str(FOLDER / "events")).config("spark.eventLog.rolling.enabled", "false")
)  # fmt: skip
spark = pyjoinopt.configure(builder).getOrCreate()
for name, rows in (("a", 1000), ("b", 100), ("c", 10)):
    spark.range(rows).createOrReplaceTempView(name)
address, application = f"http://127.0.0.1:{PORT}", spark.sparkContext.applicationId
spark.sql("SELECT * FROM a JOIN b ON a.id = b.id JOIN c ON b.id = c.id").collect()
until = time.monotonic() + 60
while "finished" not in answers(address, "", application, "anna")["joinorders/"][1]:
    assert time.monotonic() < until
    time.sleep(0.2)
found = {user: answers(address, "", application, user) for user in ("anna", "mallory")}
(FOLDER / "answers.json").write_text(json.dumps(found), encoding="utf-8")
(FOLDER / "application").write_text(application, encoding="utf-8")
spark.stop()
