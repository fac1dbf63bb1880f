// Follows the scores of a contest: the server tells that there are newer ones, and the page's part is asked for anew.
(() => {
  const place = document.getElementById("live");
  let asking = false, again = false, edition = "";
  const following = () => { const said = document.getElementById("following"); if (said) said.hidden = false; };
  const refresh = async () => {
    if (asking) { again = true; return; }
    asking = true;
    try {
      const answer = await fetch(place.dataset.scores + "&edition=" + encodeURIComponent(edition));
      if (answer.ok) show(await answer.text());
    } catch { /* The next event, or the next minute, tries again. */ }
    asking = false;
    if (again) { again = false; refresh(); }
  };
  const show = (text) => {
    const made = new DOMParser().parseFromString(text, "text/html").body;
    const focused = document.activeElement?.closest("#live details")?.id;
    for (const one of place.querySelectorAll("details[open]")) {
      const same = made.querySelector("#" + CSS.escape(one.id));
      if (same) same.open = true;
    }
    place.replaceChildren(...made.childNodes);
    if (focused) document.getElementById(focused)?.querySelector("summary").focus({ preventScroll: true });
    following();
  };
  const source = new EventSource(place.dataset.live);
  source.onopen = following;
  source.addEventListener("changed", (event) => { edition = event.data; setTimeout(refresh, Math.random() * 1000); });
  source.addEventListener("ended", () => { source.close(); setTimeout(() => location.reload(), Math.random() * 3000); });
  // Where the server has no room for one more, the page looks by itself.
  source.onerror = () => { if (source.readyState === EventSource.CLOSED) setInterval(refresh, 60000); };
})();
