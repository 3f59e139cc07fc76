import type { Answer } from "../../../contract/client.ts";
import { Link } from "@tanstack/react-router";
import { useAction, useWhyNot } from "../../data/api.ts";
import { FormDialog } from "../../ui/action-dialog.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { useDialog } from "../../ui/dialogs.tsx";
import { Checkbox } from "../../ui/field.tsx";
import { Mono } from "../../ui/text.tsx";

/** Where a path is put back from: a backup, or a folder below `.restored`. */
export type Source = { readonly backup_id: string } | { readonly folder: string };

interface RestorePathProps {
  readonly slug: string;
  readonly path: string;
  readonly source: Source;
}

/** A dialog that puts a file or folder into the live files, and says afterwards where what it replaced is. */
export function RestorePath({ slug, path, source }: RestorePathProps) {
  const action = useAction("backups.restore_path");
  const why = useWhyNot("backups.restore_path");
  if (action.data !== undefined) return <InPlace title="Restored" slug={slug} of={[action.data]} />;
  return (
    <FormDialog
      title="Restore to $STORAGE_DIR"
      submit="Restore"
      why={why}
      onSubmit={(form) =>
        action.mutateAsync({ params: { slug }, body: { path, ...source, replace: form.get("replace") === "on" } })
      }
    >
      <p className="text-sm wrap-anywhere text-muted">
        <Mono>{path}</Mono> and everything in it is put into the live files. If something is there, nothing happens
        unless you allow that it is replaced.
      </p>
      <Replace />
    </FormDialog>
  );
}

export function Replace() {
  return (
    <Checkbox
      name="replace"
      label="Replace what is there. It is kept below .restored, from where it can be put back."
    />
  );
}

interface InPlaceProps {
  readonly title: string;
  readonly slug: string;
  readonly of: readonly Pick<Answer<"disk.write">, "path" | "kept_folder">[];
}

/** Says what is in the live files now, and where what it replaced is. */
export function InPlace({ title, slug, of }: InPlaceProps) {
  const { close } = useDialog();
  return (
    <Dialog title={title}>
      <div className="flex flex-col gap-4 text-sm">
        <div role="status" className="flex flex-col gap-2 wrap-anywhere text-muted">
          {of.map(({ path, kept_folder: folder }) => (
            <p key={path}>
              <Mono>{path}</Mono> is in $STORAGE_DIR.{" "}
              {folder === null ? (
                "There was nothing to replace."
              ) : (
                <Kept slug={slug} folder={folder} onFollow={close} />
              )}
            </p>
          ))}
        </div>
        <div className="flex justify-end">
          <Button look="primary" onClick={close}>
            Close
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

interface KeptProps {
  readonly slug: string;
  readonly folder: string;
  readonly onFollow: () => void;
}

function Kept({ slug, folder, onFollow }: KeptProps) {
  return (
    <>
      What was there is in{" "}
      <Link
        to="/projects/$slug/storage"
        params={{ slug }}
        search={{ path: `.restored/${folder}` }}
        className="text-accent hover:underline"
        onClick={onFollow}
      >
        <Mono>{`.restored/${folder}`}</Mono>
      </Link>
      , from where it can be put back.
    </>
  );
}
