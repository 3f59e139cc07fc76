import { existsSync } from "node:fs";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Browser } from "playwright-core";

const executable = "/usr/bin/chromium";

/** Why browser tests are skipped; undefined where they run. */
export const noBrowser: string | undefined = existsSync(executable)
  ? undefined
  : "Chromium is not installed (tools/setup/debian installs it)";

export interface TestBrowser extends AsyncDisposable {
  readonly browser: Browser;
  close(): Promise<void>;
}

/**
 * Starts Chromium in its own network namespace, which contains only the platform's port. In the machine's namespace Chromium aborts every
 * request with ERR_NETWORK_CHANGED whenever a sandbox adds or removes an interface. An urgent browser gets the processor before all ordinary
 * processes, so that its frame times do not depend on the machine's load; that takes root.
 */
export async function launchBrowser(port: number, { isUrgent = false } = {}): Promise<TestBrowser> {
  const folder = await mkdtemp(join(tmpdir(), "berth-browser-"));
  await chmod(folder, 0o755);
  const socket = join(folder, "platform.sock");
  const relay = await relayTo(port, socket);
  const wrapper = join(folder, "chromium");
  await writeFile(wrapper, script(port, socket, isUrgent), { mode: 0o755 });
  const browser = await chromium.launch({ executablePath: wrapper, args: ["--no-sandbox", "--disable-gpu"] });
  const close = async () => {
    await browser.close();
    relay.close();
    await rm(folder, { recursive: true, force: true });
  };
  return { browser, close, [Symbol.asyncDispose]: close };
}

/** Both wrapper programs pass the browser's file descriptors on, which the driver uses. The namespace and its listeners end with the browser. */
function script(port: number, socket: string, isUrgent: boolean): string {
  return `#!/bin/sh
exec ${isUrgent ? "chrt --rr 1 " : ""}unshare --map-root-user --net --pid --fork --kill-child sh -c '
ip link set lo up
socat TCP-LISTEN:${port},bind=127.0.0.1,fork,reuseaddr UNIX-CONNECT:${socket} 3>&- 4>&- &
exec ${executable} "$@"' sh "$@"
`;
}

async function relayTo(port: number, socket: string): Promise<Server> {
  const server = createServer((client) => {
    const platform = connect(port, "127.0.0.1");
    client.on("error", () => platform.destroy()).pipe(platform);
    platform.on("error", () => client.destroy()).pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  return server;
}
