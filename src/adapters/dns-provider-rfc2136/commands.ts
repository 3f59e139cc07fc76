import type { Command } from "../../kit/exec.ts";
import type { TextRecord } from "../../ports/dns-provider.ts";

/** The primary server of the zone. */
export interface UpdateServer {
  readonly host: string;
  readonly port: number;
}

const lifetimeSeconds = 60;
const answerSeconds = 10;

/** nsupdate over TCP, so that a signed answer is not cut. */
export function nsupdateCommand(nsupdateBin: string, keyFile: string): Command {
  return { file: nsupdateBin, args: ["-v", "-t", `${answerSeconds}`, "-k", keyFile] };
}

/** What nsupdate reads: one change. It looks up the zone at that server. Removing names the exact record, so that others stay. */
export function updateText(server: UpdateServer, change: "add" | "delete", { name, value }: TextRecord): string {
  if (!/^[a-z0-9_.-]+$/i.test(name) || !/^[\w+/=.-]{1,255}$/.test(value))
    throw new Error(`not a record that can be written as text: ${name} TXT ${value}`);
  const what = change === "add" ? `add ${name}. ${lifetimeSeconds}` : `delete ${name}.`;
  return `server ${server.host} ${server.port}\nupdate ${what} TXT "${value}"\nsend\n`;
}
