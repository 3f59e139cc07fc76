import type { Answer } from "../../../contract/client.ts";
import { Section } from "../../ui/page.tsx";
import { State } from "../../ui/status.tsx";
import { Table, timeColumn } from "../../ui/table.tsx";
import { Plain } from "../../ui/text.tsx";

type Drill = Answer<"platform.overview">["last_drills"][number];

interface LastDrillsProps {
  readonly drills: readonly Drill[];
}

/** The newest trial restore of each database. */
export function LastDrills({ drills }: LastDrillsProps) {
  return (
    <Section title="Last drills" lead="Trial restores of databases from their archives, one each day.">
      {drills.length === 0 ? (
        <p className="text-sm text-muted">None yet: the first one follows the first copy of a database's archive.</p>
      ) : (
        <Table
          caption="Last drills"
          rows={drills}
          keyOf={({ organization, project }) => `${organization}/${project}`}
          columns={[
            { head: "State", cell: ({ status }) => <State of={status} /> },
            {
              head: "Database of",
              grow: true,
              cell: ({ organization, project, problem }) => (
                <>
                  {`${organization}/${project}`}{" "}
                  {problem !== null && (
                    <span className="text-muted">
                      <Plain>{problem}</Plain>
                    </span>
                  )}
                </>
              ),
            },
            timeColumn<Drill>("When", ({ created_at: at }) => at),
          ]}
        />
      )}
    </Section>
  );
}
