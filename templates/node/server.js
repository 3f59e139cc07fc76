import { createServer } from "node:http";

const { PORT = "3000", HOST = "0.0.0.0", GREETING = "Hello from Node.js" } = process.env;

const server = createServer((request, response) => {
  console.log(request.method, request.url);
  response.writeHead(200, { "content-type": "text/plain; charset=utf-8" }).end(`${GREETING}\n`);
});

server.listen(Number(PORT), HOST, () => console.log(`listening on port ${PORT}`));
process.on("SIGTERM", () => server.close());
