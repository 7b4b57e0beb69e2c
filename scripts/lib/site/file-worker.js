/* Lets the search of the pages work where they are read as files (file://), since browsers start no worker from there.
   Open it when it finds nothing on an installed copy. The script of the worker runs in a hidden frame instead. */
(() => {
  if (location.protocol !== "file:") return;

  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = this.onerror = this.onmessageerror = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      this.ready = new Promise((resolve) => this.start(url, resolve));
    }

    start(url, resolve) {
      const inside = this.frame.contentWindow;
      // What the script calls: its messages come here, and scripts that it wants are loaded in their order.
      inside.postMessage = (data) => this.tell("message", new MessageEvent("message", { data: structuredClone(data) }));
      inside.importScripts = (...urls) =>
        urls.reduce((before, each) => before.then(() => this.load(each)), Promise.resolve());
      const failed = () => new ErrorEvent("error", { message: `${url} cannot be read` });
      this.load(url).then(resolve, () => this.tell("error", failed()));
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.frame.contentDocument.createElement("script");
        script.src = url;
        script.onload = resolve;
        script.onerror = reject;
        this.frame.contentDocument.body.appendChild(script);
      });
    }

    tell(name, event) {
      this.dispatchEvent(event);
      if (this[`on${name}`]) this[`on${name}`](event);
    }

    postMessage(data) {
      this.ready.then(() => {
        const inside = this.frame.contentWindow;
        if (inside) inside.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) }));
      });
    }

    terminate() {
      this.frame.remove();
    }
  };
})();
