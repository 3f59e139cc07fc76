// An application that attacks the edge, to be pushed with `edge-attack.suite.ts`: `node attack-app.ts flood` or `hostile`.
import { answerHostilely, pourChunks, randomFrom, startRawApp } from "../../src/ports/edge-attack.suite.ts";

const random = randomFrom(1);
const isFlood = process.argv[2] === "flood";
await startRawApp(
  (socket, head) => {
    // The platform routes requests only to a healthy application.
    if (head.includes("berth-health")) socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    else if (isFlood) pourChunks(socket);
    else answerHostilely(socket, random);
  },
  { host: process.env["HOST"] ?? "0.0.0.0", port: Number(process.env["PORT"]) },
);
