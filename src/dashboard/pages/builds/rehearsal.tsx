import { rehearsalLines } from "../../../contract/rehearsal.ts";
import { useCall } from "../../data/api.ts";
import { bytes } from "../../data/format.ts";
import { useSlug } from "../../data/project.ts";
import { State } from "../../ui/status.tsx";
import { Plain } from "../../ui/text.tsx";

/** What the release command did to a copy of the data before it ran on the data itself; nothing if there was no rehearsal. */
export function Rehearsal({ number }: { readonly number: number }) {
  const slug = useSlug();
  const { data } = useCall("deployments.rehearsal", { params: { slug, number: String(number) } });
  const rehearsal = data?.rehearsal ?? null;
  if (rehearsal === null) return null;
  const { status, reason, report, copy_bytes, method } = rehearsal;
  return (
    <section aria-label="Rehearsal" className="space-y-2 rounded-md border border-line px-4 py-3.5 text-sm">
      <p className="flex flex-wrap items-center gap-x-3">
        <span className="font-semibold">Rehearsal</span>
        <State of={status} />
        {copy_bytes !== null && (
          <span className="text-muted">
            on {method === "clone" ? "a clone" : "a full copy"} of {bytes(copy_bytes)}
          </span>
        )}
        {report !== null && <span className="text-muted">{report.seconds.toFixed(1)} s</span>}
      </p>
      {reason !== null && (
        <p className="text-muted">
          <Plain>{reason}</Plain>
        </p>
      )}
      {report !== null && report.tables.length > 0 && (
        <ul className="space-y-1">
          {rehearsalLines(report).map((line, index) => (
            <li key={index}>
              <Plain>{line}</Plain>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
