// reach.mjs <port> <socket>: forwards connections at 127.0.0.1:<port> to a unix socket, for machines without socat.
import { connect, createServer } from "node:net";

const [port, socketPath] = process.argv.slice(2);
const server = createServer({ allowHalfOpen: true }, (client) => {
  const service = connect({ path: socketPath, allowHalfOpen: true });
  client.on("error", () => service.destroy()).pipe(service);
  service.on("error", () => client.destroy()).pipe(client);
});
server.maxConnections = 256;
server.listen(Number(port), "127.0.0.1");
