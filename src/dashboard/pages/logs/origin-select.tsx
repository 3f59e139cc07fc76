import { useCall } from "../../data/api.ts";
import { Select } from "../../ui/field.tsx";

/** The process whose lines a log shows; all processes if it is empty. */
export interface Origin {
  readonly process?: string;
  readonly replica?: number;
}

interface OriginSelectProps {
  readonly slug: string;
  readonly origin: Origin;
  readonly onOrigin: (origin: Origin) => void;
}

/** A choice of process types, and of each replica of types that have several. */
export function OriginSelect({ slug, origin, onOrigin }: OriginSelectProps) {
  const { data } = useCall("processes.list", { params: { slug } });
  const known = (data?.processes ?? []).flatMap(({ type, replicas }) => [
    { process: type },
    ...(replicas < 2 ? [] : Array.from({ length: replicas }, (_, replica) => ({ process: type, replica }))),
  ]);
  const present = nameOf(origin);
  // The address may name a process that no longer runs.
  const all = present === "" || known.some((each) => nameOf(each) === present) ? known : [origin, ...known];
  return (
    <Select
      aria-label="Process"
      className="max-w-36"
      value={present}
      onChange={(event) => onOrigin(all.find((each) => nameOf(each) === event.target.value) ?? {})}
    >
      <option value="">All processes</option>
      {all.map((each) => (
        <option key={nameOf(each)} value={nameOf(each)}>
          {nameOf(each)}
        </option>
      ))}
    </Select>
  );
}

function nameOf({ process, replica }: Origin): string {
  if (process === undefined && replica === undefined) return "";
  return replica === undefined ? (process ?? "") : `${process ?? "any"}.${replica}`;
}
