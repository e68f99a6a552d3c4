// A page opened from a folder may not start a worker, and the search of the theme is one. Here it runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      const waiting = [];
      let send = (data) => waiting.push(data);
      this.postMessage = (data) => send(data);
      this.terminate = () => frame.remove();
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.src = new URL(url, location.href);
      script.onload = () => {
        send = (data) => inside.dispatchEvent(new MessageEvent("message", { data }));
        waiting.forEach(send);
      };
      script.onerror = (event) => this.dispatchEvent(new ErrorEvent("error", { message: `cannot load ${url}` }));
      inside.document.body.append(script);
    }
  };
}
