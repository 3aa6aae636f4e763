// A browser refuses a worker from a page that was opened from a folder. On such a page the script of the worker runs in
// a hidden frame instead, and messages go between page and frame. The site's search is such a worker.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.ready = new Promise((done) => {
        const frame = document.createElement("iframe");
        frame.hidden = true;
        document.body.append(frame);
        const inside = frame.contentWindow;
        const load = (source) =>
          new Promise((loaded, failed) => {
            const script = frame.contentDocument.createElement("script");
            script.src = source;
            script.onload = loaded;
            script.onerror = failed;
            frame.contentDocument.body.append(script);
          });
        inside.importScripts = (...sources) =>
          sources.reduce((before, source) => before.then(() => load(source)), Promise.resolve());
        inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        load(url).then(() => done(inside));
      });
    }
    postMessage(data) {
      this.ready.then((inside) => inside.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {}
  };
}
