// A menu of the versions of this site. `release/site.py` writes versions.json one folder above the site of a version;
// a site that was only built locally has no such file, and gets no menu.
(async () => {
  const here = document.documentElement.dataset.content_root;
  const place = document.querySelector(".sidebar-brand");
  if (here === undefined || place === null) return;
  const root = new URL(here, document.location.href);
  const answer = await fetch(new URL("../versions.json", root)).catch(() => null);
  if (answer === null || !answer.ok) return;
  const menu = document.createElement("select");
  menu.className = "versions";
  menu.setAttribute("aria-label", "Version of the documentation");
  const current = root.pathname.split("/").filter(Boolean).pop();
  for (const version of await answer.json()) {
    menu.add(new Option(version, version, false, version === current));
  }
  menu.addEventListener("change", () => {
    const page = document.location.href.slice(root.href.length);
    const other = new URL(`../${menu.value}/`, root);
    fetch(new URL(page, other), { method: "HEAD" })
      .then((found) => (found.ok ? new URL(page, other) : other))
      .catch(() => other)
      .then((target) => document.location.assign(target));
  });
  place.after(menu);
})();
