"""Communication with the JVM; the only package that uses py4j.

* `shim`: loads the jar. `gateway`: requests about a plan. `decode`, `encode`: plans from and to JSON. `extension`: the
  session extension. `connect`: Spark Connect. `builder_conf`: settings of a builder. `trial_session`: a session to test
  the installation. `install/`: the jar, Java and the Scala compiler.
"""
