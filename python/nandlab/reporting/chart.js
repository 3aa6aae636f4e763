"use strict";
// Draws the charts of a page: one Vega view for each element .plot, with the JSON after it.
(() => {
  const { config, number } = JSON.parse(document.getElementById("chart-config").textContent);
  const tip = document.getElementById("tip");
  const plots = [...document.querySelectorAll(".plot")];

  const rowsOf = (table) => {
    const names = Object.keys(table);
    return table[names[0]].map((_, i) => Object.fromEntries(names.map((name) => [name, table[name][i]])));
  };
  const text = (value, unit) => {
    if (value === null || value === undefined) return "-";
    if (typeof value !== "number") return String(value);
    const size = Math.abs(value);
    const short = size >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(4)));
    return short + (unit || "");
  };

  const hide = () => { tip.hidden = true; };
  const line = (colour, words) => {
    const row = document.createElement("div");
    if (colour) row.appendChild(document.createElement("i")).style.setProperty("--c", colour);
    row.appendChild(document.createTextNode(words));
    return row;
  };
  // The values of all series at a place.
  const atPlace = (state, x) => {
    const found = [line("", state.x && typeof x === "number" ? `${state.x}: ${text(x)}` : text(x))];
    const there = state.datasets.data.filter((row) => row.x === x && !state.off.includes(row.k) && row.y !== null);
    for (const row of there) {
      const [name, colour] = state.series[row.k];
      const ends = row.l === null || row.l === undefined ? "" : ` [${text(row.l)}, ${text(row.h)}]`;
      found.push(line(colour, `${name} ${text(row.y, state.unit)}${ends}`));
    }
    for (const row of state.datasets.marks || []) {
      if (row.x === x && !state.off.includes(row.k)) found.push(line("", `${state.series[row.k][0]}, reported: ${text(row.y, state.unit)}`));
    }
    return found;
  };
  const show = (state, event, item, value) => {
    const datum = item && item.datum ? item.datum.datum || item.datum : null;
    const rows = state.series && datum
      ? atPlace(state, datum.x)
      : Object.entries(value).map(([name, found]) => line("", `${name.trim() ? `${name}: ` : ""}${text(isNaN(Number(found)) || found === "" ? found : Number(found))}`));
    tip.replaceChildren(...rows);
    tip.hidden = false;
    const left = event.clientX + 14 + tip.offsetWidth > innerWidth ? event.clientX - 14 - tip.offsetWidth : event.clientX + 14;
    const top = event.clientY + 14 + tip.offsetHeight > innerHeight ? event.clientY - 14 - tip.offsetHeight : event.clientY + 14;
    tip.style.left = `${Math.max(left, 4)}px`;
    tip.style.top = `${Math.max(top, 4)}px`;
  };

  const states = new Map();
  const draw = (plot) => {
    if (states.has(plot)) return states.get(plot);
    const { spec, tables, ...rest } = JSON.parse(plot.nextElementSibling.textContent.replaceAll("@number", number));
    const datasets = Object.fromEntries(Object.entries(tables).map(([name, table]) => [name, rowsOf(table)]));
    const state = { off: [], datasets, ...rest };
    states.set(plot, state);
    state.ready = vegaEmbed(plot, { ...spec, config, datasets }, {
      mode: "vega-lite",
      renderer: "svg",
      actions: false,
      defaultStyle: false,
      logLevel: 1,
      tooltip: (_, event, item, value) => (value === null || value === undefined || value === "" ? hide() : show(state, event, item, value)),
    }).then((result) => {
      plot.style.minHeight = "";
      // The element .plot has the role and the label. The roles that Vega sets inside have no names.
      plot.querySelector("svg").setAttribute("aria-hidden", "true");
      state.view = result.view;
      return state;
    });
    // A tap shows the values as the pointer does.
    plot.addEventListener("click", (event) => {
      if (event.pointerType === "mouse" || event.pointerType === undefined) return;
      const { clientX, clientY } = event;
      event.target.dispatchEvent(new PointerEvent("pointermove", { clientX, clientY, bubbles: true, pointerType: "mouse" }));
    });
    return state;
  };
  addEventListener("pointerdown", (event) => { if (!event.target.closest(".plot")) hide(); });
  addEventListener("scroll", hide, { passive: true });

  const zoom = (state, factor) => {
    const { view } = state;
    const signals = Object.keys(view.getState().signals || {});
    for (const [axis, name] of [["x", "zoom_x"], ["y", "zoom_y"]]) {
      const bound = signals.find((signal) => signal === name);
      if (!bound) continue;
      if (factor === null) {
        view.signal(bound, null);
      } else if (axis === "x") {
        const scale = view.scale(axis);
        const [begin, end] = scale.range();
        const middle = (begin + end) / 2;
        const half = (factor * (end - begin)) / 2;
        view.signal(bound, [scale.invert(middle - half), scale.invert(middle + half)]);
      }
    }
    view.run();
  };

  // The picture as it is, with the colours in place of their names.
  const pictureOf = (figure) => {
    const style = getComputedStyle(document.documentElement);
    const parts = [...figure.querySelectorAll(".plot svg")];
    const sizes = parts.map((svg) => svg.getBoundingClientRect());
    const width = Math.ceil(Math.max(...sizes.map((size) => size.width)));
    const height = Math.ceil(sizes.reduce((sum, size) => sum + size.height + 8, 0));
    let top = 0;
    const inner = parts.map((svg, i) => {
      const copy = svg.cloneNode(true);
      copy.removeAttribute("aria-hidden");
      copy.setAttribute("y", top);
      top += sizes[i].height + 8;
      return new XMLSerializer().serializeToString(copy);
    });
    const whole = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><rect width="100%" height="100%" fill="var(--paper)"/>${inner.join("")}</svg>`;
    return { width, height, svg: whole.replace(/var\((--[a-z]+)\)/g, (_, name) => style.getPropertyValue(name).trim()) };
  };
  const save = (blob, name) => {
    const address = URL.createObjectURL(blob);
    Object.assign(document.createElement("a"), { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  };
  const exported = (figure, kind) => {
    const { width, height, svg } = pictureOf(figure);
    const blob = new Blob([svg], { type: "image/svg+xml" });
    const name = `${figure.dataset.name}.${kind}`;
    if (kind === "svg") return save(blob, name);
    const image = new Image();
    image.onload = () => {
      const canvas = Object.assign(document.createElement("canvas"), { width: 2 * width, height: 2 * height });
      const context = canvas.getContext("2d");
      context.scale(2, 2);
      context.drawImage(image, 0, 0, width, height);
      URL.revokeObjectURL(image.src);
      canvas.toBlob((png) => save(png, name), "image/png");
    };
    image.src = URL.createObjectURL(blob);
  };

  for (const figure of document.querySelectorAll("figure.chart")) {
    const own = [...figure.querySelectorAll(".plot")];
    const buttons = [...figure.querySelectorAll(".legend button")];
    for (const button of buttons) {
      button.addEventListener("click", () => {
        button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") === "true" ? "false" : "true");
        const off = buttons.filter((one) => one.getAttribute("aria-pressed") === "false").map((one) => Number(one.dataset.k));
        for (const plot of own) {
          draw(plot).ready.then((state) => {
            state.off = off;
            state.view.signal("off", off).run();
          });
        }
      });
    }
    for (const button of figure.querySelectorAll(".tools button")) {
      button.addEventListener("click", () => {
        const act = button.dataset.do;
        Promise.all(own.map((plot) => draw(plot).ready)).then((drawn) => {
          if (act === "svg" || act === "png") exported(figure, act);
          else for (const state of drawn) zoom(state, { in: 0.6, out: 1 / 0.6, all: null }[act]);
        });
      });
    }
  }

  // Charts near the screen first, the others when there is time, all of them before printing.
  const waiting = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        waiting.unobserve(entry.target);
        draw(entry.target);
      }
    }
  }, { rootMargin: "300px" });
  for (const plot of plots) waiting.observe(plot);
  const later = window.requestIdleCallback || ((work) => setTimeout(work, 50));
  const next = () => {
    const plot = plots.find((one) => !states.has(one) && one.clientWidth > 0);
    if (plot) draw(plot).ready.then(() => later(next));
  };
  addEventListener("load", () => later(next));
  addEventListener("beforeprint", () => plots.forEach(draw));
})();
