"use strict";
const format = (v) => v === null ? "-" : Math.abs(v) >= 1000 ? Math.round(v).toLocaleString("en") : String(v);
for (const plot of document.querySelectorAll(".plot")) {
  const data = JSON.parse(plot.querySelector("script").textContent);
  const svg = plot.querySelector("svg");
  const width = svg.viewBox.baseVal.width;
  const tip = plot.appendChild(Object.assign(document.createElement("div"), { className: "tip" }));
  const hair = svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "path"));
  hair.setAttribute("class", "hair");
  const row = (colour, name, value) => {
    const line = document.createElement("div");
    if (colour) line.appendChild(Object.assign(document.createElement("i"), { className: colour }));
    line.appendChild(document.createTextNode(`${name} ${value}`));
    return line;
  };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const zoom = box.width / width;
    const x = (event.clientX - box.left) / zoom;
    const y = (event.clientY - box.top) / zoom;
    const inside = x >= data.x0 - 4 && x <= data.x1 + 4 && y >= data.y0 && y <= data.y1;
    tip.style.display = inside ? "block" : "none";
    hair.style.display = inside && data.kind === "lines" ? "inline" : "none";
    if (!inside) return;
    const rows = [];
    if (data.kind === "lines") {
      let at = 0;
      data.px.forEach((px, i) => { if (Math.abs(px - x) < Math.abs(data.px[at] - x)) at = i; });
      hair.setAttribute("d", `M${data.px[at]} ${data.y0}V${data.y1}`);
      rows.push(row("", `${format(data.x[at])} ${data.xu}`, ""));
      for (const s of data.s) rows.push(row(s.c, s.n, `${format(s.y[at])}${data.u}`));
    } else {
      const part = Math.min(Math.max((x - data.x0) / (data.x1 - data.x0), 0), 0.999999);
      const line = Math.min(Math.floor((y - data.y0) / (data.y1 - data.y0) * data.r.length), data.r.length - 1);
      const values = data.v[line];
      const at = data.xa + part * (data.xb - data.xa);
      rows.push(row("", `${data.yn} ${data.r[line]}, ${data.xn.replace("#", data.xn.endsWith("s") ? at.toPrecision(3) : Math.floor(at))}`, ""));
      rows.push(row("", `${format(values[Math.floor(part * values.length)])}${data.u}`, ""));
    }
    tip.replaceChildren(...rows);
    const left = event.clientX - box.left;
    tip.style.left = `${left + 14 + tip.offsetWidth > box.width ? left - 14 - tip.offsetWidth : left + 14}px`;
    tip.style.top = `${event.clientY - box.top + (svg.getBoundingClientRect().top - plot.getBoundingClientRect().top) + 12}px`;
  });
  svg.addEventListener("pointerleave", () => { tip.style.display = hair.style.display = "none"; });
}
