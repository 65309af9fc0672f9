package org.apache.spark.sql.pyjoinopt

import java.util.WeakHashMap

import scala.collection.mutable

/**
 * The settings that belong to the application: which program the driver starts, how often, and which files it opens.
 *
 * Their values come from the configuration of the application, or for one session from the driver's own Python
 * (`enable`, `configure`). The driver's Python calls this JVM directly. The configuration of a session is not trusted:
 * any client of a Connect or Thrift server can SET it.
 *
 * Other keys can be locked by the application (`spark.pyjoinopt.locked`).
 *
 * Laws: a value that a session has set is not used, except to switch the store off. A session that sets such a key gets
 * one warning. A session cannot bring back sources of statistics that the application leaves out.
 */
private[pyjoinopt] object ApplicationSettings {
  val Ours = "spark.pyjoinopt."

  /** The same list as `pyjoinopt.config.STATIC_KEYS`. */
  val Static: Seq[String] =
    Seq("python", "pythonpath", "workers", "startTimeout", "prestart", "store", "costConstants", "storeFunctions",
      "locked")
      .map(Ours + _)

  private val Store = Ours + "store"
  private val Off = "off"
  private val Without = Ours + "statisticsWithout"
  private val Locked = Ours + "locked"
  private val WithoutKeyword = Set(Locked, Ours + "storeFunctions")

  /** The keys whose values do not come from the session alone. */
  private def applicationKeys(session: Compat.Session): Seq[String] = (Static ++ locked(session) :+ Without).distinct

  /** The keys that the application has locked, by their names with or without prefix; `*` is all of them. */
  private def locked(session: Compat.Session): Seq[String] = {
    val named = text(session, Locked).fold(Seq.empty[String])(_.split(',').toSeq.map(_.trim).filter(_.nonEmpty))
    val bare = named.map(_.stripPrefix(Ours))
    if (bare.contains("*")) UnknownKeys.Known.map(Ours + _) else bare.map(Ours + _)
  }

  /** Whether a session cannot change a key. */
  def isLocked(session: Compat.Session, key: String): Boolean = locked(session).contains(key)

  /**
   * The key in a session's configuration under which the number of its settings by the driver's Python is stored. Spark
   * plans cached data in a clone of the session, which has the same configuration. Another session cannot guess the
   * number.
   */
  private val Number = "pyjoinopt.given"

  private final case class Given(number: String, values: Map[String, String])

  private val ofDriver = new WeakHashMap[Compat.Session, Given]
  private val warned = new WeakHashMap[Compat.Session, mutable.Set[String]]

  /** Set values of the driver's Python for one session. An empty value restores that of the application. */
  def set(session: Compat.Session, values: Map[String, String]): Unit = ofDriver.synchronized {
    values.keys.find(!Static.contains(_)).foreach(key => Support.fail(s"$key is no setting of the application."))
    val before = Option(ofDriver.get(session)).getOrElse(Given(OpenNumbers.next().toString, Map.empty))
    ofDriver.put(session, before.copy(values = before.values ++ values))
    session.sessionState.conf.setConfString(Number, before.number)
  }

  private def settingsOfDriver(session: Compat.Session): Map[String, String] = ofDriver.synchronized {
    val own = Option(ofDriver.get(session))
    val found = if (own.isDefined) own
    else ofSession(session, Number).flatMap { number =>
      val all = ofDriver.values.iterator
      var one = Option.empty[Given]
      while (one.isEmpty && all.hasNext) one = Some(all.next()).filter(_.number == number)
      one
    }
    found.fold(Map.empty[String, String])(_.values)
  }

  /** The value of a static key, which no client can have set. */
  def text(session: Compat.Session, key: String): Option[String] =
    settingsOfDriver(session).get(key).flatMap(filled)
      .orElse(session.sparkContext.conf.getOption(key).flatMap(filled))

  /** The effective value of one key. */
  def setting(session: Compat.Session, key: String): Option[String] =
    if (applicationKeys(session).contains(key)) effectiveValue(session, key) else ofSession(session, key)

  /** All effective settings of pyjoinopt in a session. */
  def effective(session: Compat.Session): Map[String, String] = {
    val application = session.sparkContext.conf.getAllWithPrefix(Ours).map { case (key, value) => (Ours + key, value) }
    val ofSession = session.sessionState.conf.getAllConfs.filter(_._1.startsWith(Ours))
    val keys = applicationKeys(session)
    val values = for (key <- keys; value <- effectiveValue(session, key)) yield key -> value
    application.toMap ++ ofSession -- keys ++ values
  }

  /** The settings of a session without effect in it. Calls of the driver's own Python use their values. */
  def overruled(session: Compat.Session): Map[String, String] = applicationKeys(session).flatMap { key =>
    ofSession(session, key)
      .filter(value =>
        value.trim != effectiveValue(session, key).getOrElse("") && (value.trim.nonEmpty || key == Without))
      .map(key -> _)
  }.toMap

  private def effectiveValue(session: Compat.Session, key: String): Option[String] = key match {
    case Store if !isLocked(session, Store) && ofSession(session, Store).exists(_.trim == Off) => Some(Off)
    case Without if !isLocked(session, Without) =>
      val both = Seq(session.sparkContext.conf.getOption(Without), ofSession(session, Without)).flatten.flatMap(filled)
      if (both.isEmpty) None else Some(both.distinct.mkString(","))
    case _ => text(session, key)
  }

  private def ofSession(session: Compat.Session, key: String): Option[String] =
    Option(session.sessionState.conf.getConfString(key, null))

  /** One warning for each session and key. */
  def warn(session: Compat.Session): Unit =
    for (key <- overruled(session).keys if isNew(session, key)) {
      if (Static.contains(key)) {
        val store = if (key == Store && !isLocked(session, Store)) " A session may only set it to off." else ""
        val keyword =
          if (WithoutKeyword(key)) "or in spark-defaults.conf"
          else "in spark-defaults.conf, or in the driver's Python by a keyword of pyjoinopt.enable"
        OptimizeJoins.log.warn(
          s"A session has set $key. It is ignored, since it belongs to the application: set it with --conf, " +
            s"$keyword.$store")
      } else if (key != Without || isLocked(session, key))
        OptimizeJoins.log.warn(s"A session has set $key. It is ignored, since the application has locked it.")
    }

  private def isNew(session: Compat.Session, key: String): Boolean = warned.synchronized {
    warned.computeIfAbsent(session, _ => mutable.Set.empty[String]).add(key)
  }

  private def filled(value: String): Option[String] = Option(value).map(_.trim).filter(_.nonEmpty)
}
