import { Play } from "lucide-react";
import { useState, type KeyboardEvent } from "react";
import type { Answer } from "../../../contract/client.ts";
import { call, useCall, useClient, useWhyNot } from "../../data/api.ts";
import { plural, visible } from "../../data/format.ts";
import { Button } from "../../ui/button.tsx";
import { useOpenDialog } from "../../ui/dialogs.tsx";
import { Select, TextArea } from "../../ui/field.tsx";
import { Section, Problem } from "../../ui/page.tsx";
import { moveInRows } from "../../data/move-in-rows.ts";
import { useMutation } from "@tanstack/react-query";
import { CellDialog } from "./cell-dialog.tsx";
import { isNumber, Value } from "./value.tsx";

type Result = Answer<"data.query">;

/** Runs one read-only statement and shows its rows. */
export function QueryBox({ slug }: { readonly slug: string }) {
  const client = useClient();
  const why = useWhyNot("data.query");
  const [sql, setSql] = useState("");
  const [chosen, setBranch] = useState("");
  const names = useReadyBranches(slug);
  // One that has ended is no longer chosen.
  const branch = names.includes(chosen) ? chosen : "";
  const query = useMutation({
    mutationFn: (text: string) =>
      call(client, "data.query", { params: { slug }, body: { sql: text, ...(branch === "" ? {} : { branch }) } }),
  });
  const isEmpty = sql.trim() === "";
  const run = () => {
    if (!query.isPending && why === undefined && !isEmpty) query.mutate(sql);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
  };
  return (
    <Section
      title="Query"
      lead="One statement that reads: 5 seconds and 500 rows at most. Nothing can be changed here."
    >
      <div className="flex flex-col gap-3">
        <TextArea
          aria-label="SQL statement"
          rows={3}
          value={sql}
          placeholder="select * from orders order by created_at desc limit 20"
          onChange={(event) => setSql(event.target.value)}
          onKeyDown={onKeyDown}
        />
        <div className="flex flex-wrap items-center gap-3">
          <Button
            icon={<Play size={14} />}
            busy={query.isPending}
            why={isEmpty ? "Write a statement first." : why}
            onClick={run}
          >
            Run
          </Button>
          {names.length > 0 && (
            <Select
              aria-label="Where to read"
              className="w-auto"
              value={branch}
              onChange={(event) => setBranch(event.target.value)}
            >
              <option value="">the live database</option>
              {names.map((name) => (
                <option key={name} value={name}>
                  the branch {name}
                </option>
              ))}
            </Select>
          )}
          <span role="status" className="text-sm text-muted">
            {query.data === undefined ? (
              <span className="max-sm:hidden pointer-coarse:hidden">Ctrl Enter runs it.</span>
            ) : (
              `${plural(query.data.rows.length, "row")}${query.data.more ? "; there are more" : ""}`
            )}
          </span>
        </div>
        {query.error !== null && <Problem error={query.error} />}
        {query.data !== undefined && query.data.columns.length > 0 && <Rows result={query.data} />}
      </div>
    </Section>
  );
}

function useReadyBranches(slug: string): readonly string[] {
  const { data } = useCall("branches.list", { params: { slug } });
  return data?.branches.filter(({ status }) => status === "ready").map(({ name }) => name) ?? [];
}

function Rows({ result: { columns, rows, cut } }: { readonly result: Result }) {
  const openDialog = useOpenDialog();
  return (
    <div tabIndex={0} onKeyDown={moveInRows} className="max-h-[26rem] overflow-auto rounded-md border border-line">
      <table className="min-w-full text-sm">
        <caption className="sr-only">Rows of the query</caption>
        <thead className="sticky top-0 bg-panel text-left">
          <tr>
            {columns.map(({ name, type }, index) => (
              <th
                key={index}
                scope="col"
                className={`border-b border-line px-3 py-1.5 leading-4 font-medium ${isNumber.test(type) ? "text-right" : ""}`}
              >
                {visible(name)}
                <span className="block text-xs font-normal text-faint">{visible(type)}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="divide-y divide-line">
          {rows.map((row, at) => (
            <tr key={at} className="hover:bg-panel">
              {columns.map(({ name, type }, index) => (
                <td key={index} className="h-8 max-w-96 p-0">
                  <button
                    type="button"
                    className={`block h-full w-full truncate px-3 text-left font-mono text-[12.5px] focus-visible:outline-offset-[-2px] ${isNumber.test(type) ? "text-right" : ""}`}
                    onClick={() =>
                      openDialog(
                        <CellDialog
                          cell={{
                            name,
                            type,
                            value: row[index],
                            isCut: cut.some((each) => each.row === at && each.columns.includes(index)),
                          }}
                        />,
                      )
                    }
                  >
                    <Value value={row[index]} />
                  </button>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
