import { History } from "lucide-react";
import type { Answer } from "../../../contract/client.ts";
import { useCall } from "../../data/api.ts";
import { bytes, exact } from "../../data/format.ts";
import { textOf, TextField } from "../../ui/field.tsx";
import { ActionButton } from "../../ui/action-button.tsx";
import { ActionDialog } from "../../ui/action-dialog.tsx";
import { DialogButton } from "../../ui/button.tsx";
import { useOpenDialog } from "../../ui/dialogs.tsx";
import { Section, View } from "../../ui/page.tsx";
import { State, Ago, Fact } from "../../ui/text.tsx";

type Archive = Answer<"backups.archive">;

/** Which moments of the database can be restored, as a line with the deployments as marks. */
export function Moments({ slug }: { readonly slug: string }) {
  const archive = useCall("backups.archive", { params: { slug } });
  const openDialog = useOpenDialog();
  return (
    <Section
      title="Any moment"
      lead="Berth keeps what the database writes as it writes it. Any moment becomes a database beside the live one, which can be promoted."
    >
      <View of={archive}>
        {(data) => (
          <>
            <dl className="grid grid-cols-2 gap-4 rounded-md border border-line p-4 sm:grid-cols-5">
              <Fact label="Status">
                <State of={data.status} />
              </Fact>
              <Fact label="From">{ago(data.windows[0]?.from)}</Fact>
              <Fact label="To">{ago(data.windows.at(-1)?.to)}</Fact>
              <Fact label="Last drill">
                <LastDrill slug={slug} />
              </Fact>
              <Fact label="Stored">{bytes(data.stored_bytes)}</Fact>
            </dl>
            {data.windows.length > 0 && (
              <MomentLine
                slug={slug}
                archive={data}
                onPick={(at) => openDialog(<RestoreMoment slug={slug} at={at} />)}
              />
            )}
            {data.reason !== null && <p className="text-sm text-muted">{data.reason}</p>}
            {data.gaps.map(({ from, to, reason }) => (
              <p key={from} className="text-sm text-muted">
                No moment from {exact(from)} to {exact(to)}: {reason}
              </p>
            ))}
            <div>
              {data.status === "off" ? (
                <ActionButton
                  row="backups.set_archive"
                  label="Keep every moment from now on"
                  input={{ params: { slug }, body: { enabled: true } }}
                />
              ) : (
                <DialogButton
                  icon={<History size={15} />}
                  row="backups.restore"
                  why={data.windows.length === 0 ? "There is no moment to restore yet." : undefined}
                  dialog={<RestoreMoment slug={slug} at={data.windows.at(-1)?.to ?? ""} />}
                >
                  Restore a moment
                </DialogButton>
              )}
            </div>
          </>
        )}
      </View>
    </Section>
  );
}

const ago = (at: string | undefined) => (at === undefined ? "–" : <Ago at={at} />);

/** When the database was last restored from its archive to try it, and how that went. */
export function LastDrill({ slug }: { readonly slug: string }) {
  const [last] = useCall("backups.drills", { params: { slug } }).data?.drills ?? [];
  if (last === undefined) return "none yet";
  return (
    <span title={last.problem ?? undefined}>
      <State of={last.status} /> <Ago at={last.created_at} />
    </span>
  );
}

interface LineProps {
  readonly slug: string;
  readonly archive: Archive;
  readonly onPick: (at: string) => void;
}

/** The time that can be restored, with the deployments as marks; a mark picks the moment before it. */
export function MomentLine({ slug, archive: { windows }, onPick }: LineProps) {
  const deployments = useCall("deployments.list", { params: { slug } });
  const from = Date.parse(windows[0]?.from ?? "");
  const length = Math.max(1, Date.parse(windows.at(-1)?.to ?? "") - from);
  const percent = (at: string) => ((Date.parse(at) - from) / length) * 100;
  const marks = (deployments.data?.deployments ?? []).filter(({ created_at: at }) =>
    windows.some((window) => window.from <= at && at <= window.to),
  );
  return (
    <div className="flex flex-col gap-1">
      <div className="relative mx-2 h-6" role="group" aria-label="Deployments: choose one for the moment before it">
        {windows.map((window) => (
          <span
            key={window.from}
            className="absolute top-2.5 h-1 rounded-full bg-accent/40"
            style={{ left: `${percent(window.from)}%`, width: `${percent(window.to) - percent(window.from)}%` }}
          />
        ))}
        {marks.map(({ number, created_at: at }) => (
          <button
            key={number}
            type="button"
            aria-label={`Before deployment ${number}, ${exact(at)}`}
            title={`Before deployment ${number}, ${exact(at)}`}
            className="absolute top-1/2 h-5 w-2 -translate-1/2 cursor-pointer rounded-full bg-accent hover:bg-text"
            style={{ left: `${percent(at)}%` }}
            onClick={() => onPick(at)}
          />
        ))}
      </div>
      <p className="text-xs text-faint">
        The moments that are kept, from the oldest to now. A mark is a deployment: choose it for the moment before.
      </p>
    </div>
  );
}

interface RestoreMomentProps {
  readonly slug: string;
  readonly at: string;
}

function RestoreMoment({ slug, at }: RestoreMomentProps) {
  return (
    <ActionDialog
      row="backups.restore"
      title="Restore a moment"
      submit="Restore beside the live one"
      input={(form) => ({ params: { slug }, body: { at: `${textOf(form, "at")}Z` } })}
    >
      <TextField
        name="at"
        label="Moment (UTC)"
        type="datetime-local"
        step={0.001}
        required
        defaultValue={at.replace("Z", "")}
      />
      <p className="text-sm text-muted">
        The live database is not touched. What was committed by then becomes a database beside it, which can be
        promoted.
      </p>
    </ActionDialog>
  );
}
