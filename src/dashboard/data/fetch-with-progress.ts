/** Makes a `fetch` that reports the bytes that were sent; `fetch` itself reports none. */
export function fetchWithProgress(onSent: (bytes: number) => void): typeof fetch {
  return (input, { method = "GET", headers, body, signal } = {}) =>
    new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open(method, input as string);
      for (const [name, value] of new Headers(headers)) request.setRequestHeader(name, value);
      request.upload.addEventListener("progress", ({ loaded }) => onSent(loaded));
      request.addEventListener("error", () => reject(new TypeError("The connection broke.")));
      request.addEventListener("abort", () => reject(signal?.reason as Error));
      request.addEventListener("load", () => {
        const heads = request.getAllResponseHeaders().trim().split("\r\n");
        const pairs = heads.map((line) => line.split(/: (.*)/s).slice(0, 2) as [string, string]);
        resolve(new Response(request.responseText, { status: request.status, headers: pairs }));
      });
      signal?.addEventListener("abort", () => request.abort());
      request.send(body as XMLHttpRequestBodyInit);
    });
}
