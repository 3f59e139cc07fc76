import { ArrowLeftRight } from "lucide-react";
import type { Answer } from "../../../contract/client.ts";
import { firstLine, shortCommit } from "../../data/format.ts";
import { useCall } from "../../data/api.ts";
import { IconButton } from "../../ui/button.tsx";
import { Select } from "../../ui/field.tsx";
import { State, Ago, Mono, Plain } from "../../ui/text.tsx";

/** A deployment, or a build that led to none. */
export type Side =
  | ({ readonly kind: "deployment" } & Pick<Answer<"deployments.compare">["from"], Shown>)
  | ({ readonly kind: "build" } & Pick<Answer<"builds.list">["builds"][number], Shown>);
type Shown = "number" | "status" | "commit" | "message" | "created_at";

export type Chosen = Pick<Side, "kind" | "number">;

interface CompareSidesProps {
  readonly slug: string;
  readonly from: Side;
  readonly to: Side;
  readonly onChoose: (from: number, to: Chosen) => void;
}

/** The two that are compared, and the choice of others. */
export function CompareSides({ slug, from, to, onChoose }: CompareSidesProps) {
  const deployments = useCall("deployments.list", { params: { slug } });
  const builds = useCall("builds.list", { params: { slug } });
  const numbers = (deployments.data?.deployments ?? []).map(({ number }): Chosen => ({ kind: "deployment", number }));
  const failed = (builds.data?.builds ?? [])
    .filter(({ status }) => status === "failed")
    .map(({ number }): Chosen => ({ kind: "build", number }));
  return (
    <div className="grid items-center gap-3 md:grid-cols-[1fr_auto_1fr]">
      <SideBox label="From" side={from} options={numbers} onChoose={({ number }) => onChoose(number, to)} />
      <IconButton
        label="Swap the two"
        className="justify-self-center"
        why={to.kind === "build" ? "A build is compared with a deployment before it." : undefined}
        onClick={() => onChoose(to.number, from)}
      >
        <ArrowLeftRight size={15} className="max-md:rotate-90" />
      </IconButton>
      <SideBox
        label="To"
        side={to}
        options={[...numbers, ...failed]}
        onChoose={(chosen) => onChoose(from.number, chosen)}
      />
    </div>
  );
}

interface SideBoxProps {
  readonly label: string;
  readonly side: Side;
  readonly options: readonly Chosen[];
  readonly onChoose: (chosen: Chosen) => void;
}

const valueOf = ({ kind, number }: Chosen) => (kind === "build" ? `build ${number}` : `${number}`);

function SideBox({ label, side, options, onChoose }: SideBoxProps) {
  const isListed = options.some((each) => valueOf(each) === valueOf(side));
  const all = isListed ? options : [side, ...options];
  return (
    <div className="flex min-w-0 flex-col gap-2 rounded-md border border-line p-4">
      <div className="flex items-center gap-3 text-sm">
        <Select
          aria-label={`${label} deployment`}
          className="max-w-28"
          value={valueOf(side)}
          onChange={({ target }) => onChoose(all.find((each) => valueOf(each) === target.value) ?? side)}
        >
          {all.map((each) => (
            <option key={valueOf(each)} value={valueOf(each)}>
              {each.kind === "build" ? `Build ${each.number}` : `#${each.number}`}
            </option>
          ))}
        </Select>
        <State of={side.status} />
        <Ago at={side.created_at} className="ml-auto text-muted" />
      </div>
      <p className="truncate text-sm">
        <Mono className="text-muted">{shortCommit(side.commit)}</Mono> <Plain>{firstLine(side.message)}</Plain>
      </p>
    </div>
  );
}
