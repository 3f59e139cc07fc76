import { useCall } from "../data/api.ts";
import { exact } from "../data/format.ts";
import { textOf, SelectField } from "../ui/field.tsx";
import { ActionDialog } from "../ui/action-dialog.tsx";
import type { OfProject } from "./actions.ts";
import { plainAction, useDone } from "./plain-action.tsx";
import { removal } from "./removals.tsx";

export const CreateDatabase = plainAction({
  row: "database.create",
  title: (slug) => `Create the database of ${slug}`,
  submit: "Create",
  input: (slug) => ({ params: { slug }, body: {} }),
  text: "A PostgreSQL database of its own, backed up every day. The application gets its address in DATABASE_URL at its next start.",
  to: "database",
});

export const BackUp = plainAction({
  row: "backups.create",
  title: (slug) => `Back up the database of ${slug}`,
  submit: "Back up now",
  input: (slug) => ({ params: { slug }, body: {} }),
  text: "The application goes on meanwhile.",
  to: "backups",
});

export function Verify(props: OfProject) {
  const done = useDone(props);
  const { why, options } = useBackups(props.slug);
  return (
    <ActionDialog
      row="backups.verify"
      title="Verify a backup"
      submit="Verify"
      why={why}
      input={(form) => ({ params: { id: textOf(form, "backup") } })}
      onDone={() => done("backups")}
      onClose={props.onClose}
    >
      <SelectField name="backup" label="Backup" options={options} />
      <p className="text-sm text-muted">
        A database is restored into a scratch one, and the rows of each table are compared; files are read and their
        checksums compared.
      </p>
    </ActionDialog>
  );
}

export function Restore(props: OfProject) {
  const done = useDone(props);
  const { why, options } = useBackups(props.slug);
  return (
    <ActionDialog
      row="backups.restore"
      title="Restore a backup"
      submit="Restore beside the live one"
      why={why}
      input={(form) => ({ params: { slug: props.slug }, body: { backup_id: textOf(form, "backup") } })}
      onDone={() => done("backups")}
      onClose={props.onClose}
    >
      <SelectField name="backup" label="Backup" options={options} />
      <p className="text-sm text-muted">
        The live data is not touched: a database becomes a new one, which can be promoted, and files go into a new
        folder below $STORAGE_DIR/.restored.
      </p>
    </ActionDialog>
  );
}

function useBackups(slug: string) {
  const { data } = useCall("backups.list", { params: { slug } });
  const whole = data?.backups.filter(({ status }) => status === "completed") ?? [];
  return {
    why: data !== undefined && whole.length === 0 ? "There is no completed backup." : undefined,
    options: whole.map(
      ({ id, created_at: at, origin, content }) => [id, `${exact(at)}, ${content}, ${origin}`] as const,
    ),
  };
}

export const Promote = removal({
  row: "backups.promote",
  title: "Promote a database",
  submit: "Promote",
  label: "Database",
  useNames: useRestored,
  typed: (slug) => slug,
  input: (slug, database) => ({ params: { slug }, body: { database } }),
  text: "The application restarts on it. The present one is kept, and promoting that goes back.",
  to: "backups",
});

export const Drop = removal({
  row: "backups.drop",
  title: "Drop a database",
  submit: "Drop",
  label: "Database",
  useNames: useRestored,
  input: (slug, database) => ({ params: { slug, database } }),
  text: "It is gone for good. The live database and the backups stay.",
  to: "backups",
});

/** Returns the names of the restored databases. An error means that the project has no database, so none was restored. */
function useRestored(slug: string): readonly string[] | undefined {
  const { data, error } = useCall("backups.restored", { params: { slug } });
  return error === null ? data?.databases.map(({ database }) => database) : [];
}
