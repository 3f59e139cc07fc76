import { certificatesMark, servingCertificates } from "../../features/certificates/certificates.ts";
import type { Task } from "../driver.ts";
import type { Platform } from "../platform.ts";

/** Learns which hostnames the edges serve over HTTPS, in a process that has no edge: the URLs that it shows depend on it. */
export function httpsNamesTask({ db, certificates, httpsNames }: Platform): Task {
  let read = "";
  return {
    name: "https-names",
    periodMs: 3000,
    topics: ["certificates"],
    async run() {
      const mark = await certificatesMark(db);
      if (mark === read) return { detail: "unchanged" };
      const ordered = (await servingCertificates(db)).map(({ hostname }) => hostname);
      httpsNames.set([...certificates.own().flatMap(({ names }) => names), ...ordered]);
      read = mark;
      return { detail: `${ordered.length} names` };
    },
  };
}
