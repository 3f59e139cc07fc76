import type { Command } from "../../kit/exec.ts";
import type { TextRecord } from "../../ports/dns-provider.ts";

/** The primary server of the zone. */
export interface UpdateServer {
  readonly host: string;
  readonly port: number;
}

const lifetimeSeconds = 60;
const answerSeconds = 10;

/** Runs nsupdate over TCP, so that a signed response is not truncated. */
export function nsupdateCommand(nsupdateBin: string, keyFile: string): Command {
  return { file: nsupdateBin, args: ["-v", "-t", `${answerSeconds}`, "-k", keyFile] };
}

/**
 * Returns nsupdate's input for one change; nsupdate finds the zone by asking the same server. A deletion names the exact record, so that
 * other records stay.
 */
export function updateText(server: UpdateServer, change: "add" | "delete", { name, value }: TextRecord): string {
  if (!/^[a-z0-9_.-]+$/i.test(name) || !/^[\w+/=.-]{1,255}$/.test(value))
    throw new Error(`not a record that can be written as text: ${name} TXT ${value}`);
  const what = change === "add" ? `add ${name}. ${lifetimeSeconds}` : `delete ${name}.`;
  return `server ${server.host} ${server.port}\nupdate ${what} TXT "${value}"\nsend\n`;
}
