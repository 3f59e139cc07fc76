import { createServer } from "node:http";

const { PORT = "3000", HOST = "0.0.0.0", BERTH_PROJECT = "nowhere", BERTH_GIT_SHA = "", GREETING = "Hello from Berth" } = process.env;

const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${BERTH_PROJECT}</title>
<style>body { font: 1.1rem/1.6 system-ui, sans-serif; max-width: 36rem; margin: 15vh auto; padding: 0 1rem }</style>
<h1>${escape(GREETING)}</h1>
<p>This is the project <b>${escape(BERTH_PROJECT)}</b> at commit <code>${BERTH_GIT_SHA.slice(0, 7)}</code>.</p>
<p>Push another version, or change <code>GREETING</code> with <code>berth env set</code>.</p>
</html>
`;

function escape(text) {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}

const server = createServer((request, response) => {
  console.log(request.method, request.url);
  response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(page);
});

server.listen(Number(PORT), HOST, () => console.log(`listening on ${PORT}`));
process.on("SIGTERM", () => server.close());
