"""The only room that knows py4j.

* `shim`: the JVM's side. `gateway`: requests. `decode`, `encode`: plans from and to JSON. `extension`: the session
  extension. `connect`: Spark Connect. `builder_conf`: what a builder was given. `trial_session`: a session for a test
  of the installation. `install/`: the jar, Java and the Scala compiler.
"""
