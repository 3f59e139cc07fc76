import { Agent, request } from "node:https";
import type { TLSSocket } from "node:tls";
import { eventually } from "./eventually.ts";

/** A hostname at an edge on loopback, and the authority that its certificate is verified against. */
export interface TlsAddress {
  readonly port: number;
  readonly servername: string;
  readonly ca: string;
}

/** The response's body and the serial number of the connection's certificate. */
export interface TlsVisit {
  readonly body: string;
  readonly serial: string;
}

/** Sends a request over HTTPS; without an agent, over a new connection. */
export function visitOverTls(at: TlsAddress, agent: Agent | false = false): Promise<TlsVisit> {
  return new Promise((resolve, reject) => {
    const asking = request({ ...at, host: "127.0.0.1", agent, headers: { host: at.servername } }, (response) => {
      const serial = (response.socket as TLSSocket).getPeerCertificate().serialNumber;
      let body = "";
      response.on("data", (chunk: Buffer) => (body += chunk.toString()));
      response.on("end", () => resolve({ body, serial })).on("error", reject);
    });
    asking.on("error", reject).end();
  });
}

/** Visits that fail if the response is not `expected`. */
export interface Visits {
  readonly failures: readonly string[];
  /** Returns the serial numbers of the certificates of kept connections. */
  keptSerials(): readonly string[];
  /** Resolves after this many further successful visits of each kind; those over new connections have this certificate. */
  passed(count: number, serial: string): Promise<void>;
  stop(): Promise<void>;
}

/** Visits a hostname without a pause until stopped: two visitors keep their connection, two open a new one for each request. */
export function startVisits(at: TlsAddress, expected: string): Visits {
  const failures: string[] = [];
  const kept: string[] = [];
  const fresh: string[] = [];
  const agent = new Agent({ keepAlive: true, maxSockets: 2 });
  let stopped = false;
  const visitor = async (serials: string[]) => {
    while (!stopped) {
      const visit = visitOverTls(at, serials === kept ? agent : false);
      const { body, serial } = await visit.catch((error: Error) => ({ body: error.message, serial: "" }));
      if (body === expected) serials.push(serial);
      else failures.push(body);
    }
  };
  const visitors = [kept, kept, fresh, fresh].map(visitor);
  const freshWith = (serial: string) => fresh.filter((each) => each === serial).length;
  return {
    failures,
    keptSerials: () => [...new Set(kept)],
    async passed(count, serial) {
      const [keptGoal, freshGoal] = [kept.length + count, freshWith(serial) + count];
      const hasPassed = () => failures.length > 0 || (kept.length >= keptGoal && freshWith(serial) >= freshGoal);
      await eventually(async () => hasPassed(), `${count} more visits of each kind succeeded`);
    },
    async stop() {
      stopped = true;
      await Promise.all(visitors);
      agent.destroy();
    },
  };
}
