// Keeps the time to the lock on the page current. The server's clock decides; this only counts from what it said.
(() => {
  const place = document.getElementById("countdown");
  const began = performance.now();
  const seconds = Number(place.dataset.seconds);
  const two = (number) => String(number).padStart(2, "0");
  const tick = () => {
    const left = Math.max(0, seconds - Math.floor((performance.now() - began) / 1000));
    const days = Math.floor(left / 86400), hours = Math.floor(left / 3600) % 24, minutes = Math.floor(left / 60) % 60;
    place.textContent = left === 0 ? "now" : "in " + (days ? `${days} d ${hours} h` : `${hours}:${two(minutes)}:${two(left % 60)}`);
    if (left > 0) setTimeout(tick, 1000);
  };
  tick();
})();
