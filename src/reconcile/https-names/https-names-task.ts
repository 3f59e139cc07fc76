import { certificatesMark, servingCertificates } from "../../features/certificates/certificates.ts";
import type { Task, Platform } from "../platform.ts";

/** Reads which hostnames the edges serve over HTTPS, for a process without an edge: the URLs it shows depend on that. */
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
