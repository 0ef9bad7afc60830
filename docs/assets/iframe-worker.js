/* Browsers start no worker from a file, but the site's search is one. Where the site is opened from a
 * folder, the search runs in a hidden frame instead, so that it works without a server. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.inside = frame.contentWindow
      this.inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.inside.importScripts = async (...urls) => {
        for (const each of urls) await this.load(each)
      }
      this.ready = this.load(new URL(url, location.href))
    }

    load(url) {
      const page = this.inside.document
      const script = page.createElement("script")
      return new Promise((resolve, reject) => {
        script.onload = resolve
        script.onerror = () => reject(new Error(`cannot load ${url}`))
        script.src = url
        page.body.append(script)
      })
    }

    async postMessage(data) {
      await this.ready
      this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data }))
    }
  }
}
