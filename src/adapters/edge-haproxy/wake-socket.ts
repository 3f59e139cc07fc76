import { chownSync, chmodSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";

export const wakeSocket = "wake.sock";

const projectLine = /^([\w.-]{1,64})\n/;

/** Answers `wake.lua`, which sends a project's id in a line, once `wake` has settled. Only HAProxy's user may ask. */
export function listenForWakes(path: string, uid: number | null, wake: (projectId: string) => Promise<void>): Server {
  rmSync(path, { force: true });
  const answer = (socket: Socket, line: string) => {
    const [, project] = projectLine.exec(line) ?? [];
    const end = () => socket.end("\n");
    return project === undefined ? end() : void wake(project).then(end, end);
  };
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.setTimeout(60_000, () => socket.destroy());
    socket.once("data", (line) => answer(socket, line.toString("latin1")));
  });
  server.on("error", () => server.close());
  server.listen(path, () => {
    chmodSync(path, 0o600);
    if (uid !== null) chownSync(path, uid, uid);
  });
  return server.unref();
}
