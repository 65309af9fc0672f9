package org.apache.spark.sql.pyjoinopt

import java.io.{File, FileOutputStream}
import java.util.zip.{ZipEntry, ZipOutputStream}

import org.junit.jupiter.api.Assertions.{assertEquals, assertTrue}
import org.junit.jupiter.api.Test

import org.apache.spark.sql.SparkSession

/** What Maven tests before it packs a jar: the classes load in this Spark, and the Python sources are among them. */
class ShimTest {

  @Test def aSessionLoadsTheExtensionAndPlansAQueryWithIt(): Unit = {
    val session = SparkSession.builder().master("local[1]")
      .config("spark.ui.enabled", "false")
      .config("spark.driver.host", "127.0.0.1")
      .config("spark.sql.shuffle.partitions", "1")
      .config("spark.sql.extensions", classOf[PyJoinOptExtensions].getName)
      .config("spark.pyjoinopt.prestart", "off")
      .config("spark.pyjoinopt.strategy", "none")
      .getOrCreate()
    try {
      assertTrue(session.sql("SELECT joinopt_version()").head.getString(0).nonEmpty)
      assertTrue(PyJoinOptExtensions.ruleOf(session.asInstanceOf[Compat.Session]).exists(_.enabled))
      val query = "SELECT /*+ KEEP_JOIN_ORDER */ * FROM range(10) a JOIN range(20) b USING (id)"
      assertEquals(10L, session.sql(query).count())
    } finally session.stop()
  }

  @Test def thePythonSourcesAreAmongTheClassesAndWorkersImportThemFromThere(): Unit = {
    val classes = new File(classOf[PyJoinOptExtensions].getProtectionDomain.getCodeSource.getLocation.toURI)
    for (name <- Seq("__init__.py", "_version.py", "worker/__main__.py"))
      assertTrue(new File(classes, s"python/pyjoinopt/$name").isFile, name)
    assertEquals(Some(new File(classes, "python").getPath), WorkerSettings.pathOf(classes))
  }

  @Test def aJarWithoutPythonSourcesNamesNoFolder(): Unit = {
    val jar = File.createTempFile("pyjoinopt", ".jar")
    try {
      val archive = new ZipOutputStream(new FileOutputStream(jar))
      archive.putNextEntry(new ZipEntry("python/other.py"))
      archive.close()
      assertEquals(None, WorkerSettings.pathOf(jar))
    } finally jar.delete()
  }
}
