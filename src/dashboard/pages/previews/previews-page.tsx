import { Link, useNavigate } from "@tanstack/react-router";
import { GitBranch, Plus } from "lucide-react";
import type { Answer } from "../../../contract/client.ts";
import { useCall, useProject, useSlug } from "../../data/api.ts";
import { visible } from "../../data/format.ts";
import { textOf, TextField } from "../../ui/field.tsx";
import { ActionButton } from "../../ui/action-button.tsx";
import { ActionDialog, createRemoval } from "../../ui/action-dialog.tsx";
import { DialogButton, Command } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { OutsideLink } from "../../ui/outside-link.tsx";
import { List, type Column } from "../../ui/table.tsx";
import { Page, Empty, View } from "../../ui/page.tsx";
import { State, Ago, Mono } from "../../ui/text.tsx";

type Preview = Answer<"previews.list">["previews"][number];

// A build or a removal in a preview is no change of this project, which the stream of changes would report.
const lookMs = (found: Answer<"previews.list"> | undefined) =>
  found?.previews.some(({ state }) => state === "building" || state === "removing") === true && 3000;

function commandFor(slug: string, { isOff, byPush }: { readonly isOff: boolean; readonly byPush: boolean }): string {
  if (isOff) return `berth projects settings ${slug} --previews '*'`;
  return byPush ? "git push berth feature/search" : "berth preview create fix --from-live";
}

export function PreviewsPage() {
  const slug = useSlug();
  const { data: project } = useProject();
  const previews = useCall("previews.list", { params: { slug } }, { pollMs: lookMs });
  // Agents that deploy to previews only make them on request, also where pushes make none.
  const isOff = project?.previews === null && project.agents === "deploy";
  const actions = !isOff && (
    <DialogButton look="primary" icon={<Plus size={15} />} row="previews.create" dialog={<Create slug={slug} />}>
      New preview
    </DialogButton>
  );
  return (
    <Page
      title="Previews"
      lead="A push of another branch builds it into a preview: a URL, database and variables of its own."
      actions={actions}
    >
      <List
        of={previews}
        caption="Previews"
        rows={(data) => data.previews}
        keyOf={({ id }) => id}
        columns={columns}
        phone={(preview) => <PreviewItem preview={preview} />}
        empty={
          <Empty
            icon={<GitBranch size={24} />}
            title={isOff ? "Previews are off" : "No previews"}
            command={commandFor(slug, { isOff, byPush: project?.previews !== null })}
          >
            {isOff ? (
              <>
                Name the branches that get one in the{" "}
                <Link
                  to="/projects/$slug/settings"
                  params={{ slug }}
                  className="text-accent underline underline-offset-2"
                >
                  settings
                </Link>
                .
              </>
            ) : project?.previews === null ? (
              "Agents make one of what serves, and deploy to it."
            ) : (
              "Push a branch other than the one that deploys."
            )}
          </Empty>
        }
      />
    </Page>
  );
}

interface DialogProps {
  readonly slug: string;
}

function Create({ slug }: DialogProps) {
  return (
    <ActionDialog
      row="previews.create"
      title="New preview"
      submit="Build"
      input={(form) => ({ params: { slug }, body: { branch: textOf(form, "branch").trim() } })}
    >
      <TextField name="branch" label="Branch" hint="A branch that was pushed to this project before." mono required />
    </ActionDialog>
  );
}

/** The text for a pull request, which Berth posts itself where it may. */
function Comment({ slug, preview: { branch } }: DialogProps & { readonly preview: Preview }) {
  const found = useCall("previews.comment", { params: { slug, preview: branch } });
  return (
    <Dialog title={`Comment on ${visible(branch)}`} shape="wide">
      <View of={found}>
        {({ text, request, posted, problem }) => (
          <>
            <p className="text-sm text-muted">
              {posted && request !== null ? (
                <>
                  Berth posted it on{" "}
                  <OutsideLink url={request.url} className="text-accent hover:underline">
                    #{request.number}
                  </OutsideLink>{" "}
                  and keeps it up to date.
                </>
              ) : (
                (problem ??
                "Copy it into the pull request. Berth posts it where a followed repository's token may comment.")
              )}
            </p>
            <Command label="Copy the text">{text}</Command>
          </>
        )}
      </View>
    </Dialog>
  );
}

/** Promotes what the preview served when the user asked: by then it may serve something else. */
function Promote({ slug, preview: { branch, commit } }: DialogProps & { readonly preview: Preview }) {
  const navigate = useNavigate();
  return (
    <ActionDialog
      row="previews.promote"
      title="Promote a preview"
      submit="Promote"
      input={() => ({ params: { slug, preview: branch }, body: { expected_commit: commit ?? undefined } })}
      onDone={() => void navigate({ to: "/projects/$slug/deployments", params: { slug } })}
    >
      <p className="text-sm text-muted">
        The very image that runs in the preview of <Mono>{visible(branch)}</Mono>, of commit{" "}
        <Mono>{(commit ?? "").slice(0, 8)}</Mono>, serves this project's visitors, with the project's variables and
        data. Its release command is rehearsed as with every deployment.
      </p>
    </ActionDialog>
  );
}

const columns: readonly Column<Preview>[] = [
  { head: "State", cell: ({ state }) => <State of={state} /> },
  { head: "Branch", grow: true, cell: (preview) => <Named preview={preview} /> },
  { head: "Address", cell: ({ url }) => <OutsideLink url={url} className={address} /> },
  { head: "Created", wide: true, cell: ({ created_at: at }) => <Ago at={at} /> },
  { head: "Ends", wide: true, cell: ({ expires_at: at }) => (at === null ? "pinned" : <Ago at={at} />) },
  { head: "", end: true, cell: (preview) => <Acts preview={preview} /> },
];

interface ItemProps {
  readonly preview: Preview;
}

function PreviewItem({ preview }: ItemProps) {
  return (
    <div className="flex flex-col gap-2">
      <div className="flex min-w-0 flex-col gap-0.5">
        <Named preview={preview} />
        <OutsideLink url={preview.url} className={address} />
        <p className="flex gap-2 text-muted">
          <State of={preview.state} /> <Ends at={preview.expires_at} />
        </p>
      </div>
      <Acts preview={preview} />
    </div>
  );
}

function Named({ preview: { slug, branch } }: ItemProps) {
  return (
    <Link to="/projects/$slug" params={{ slug }} className="min-w-0 truncate font-medium hover:text-accent">
      {visible(branch)}
    </Link>
  );
}

const address = "truncate text-accent hover:underline";

function Ends({ at }: { readonly at: string | null }) {
  if (at === null) return <span>pinned</span>;
  return (
    <span>
      ends <Ago at={at} />
    </span>
  );
}

function Acts({ preview }: ItemProps) {
  const { branch, state, commit, expires_at } = preview;
  const slug = useSlug();
  if (state === "removing") return null;
  const called = visible(branch);
  const pin = expires_at === null ? "Unpin" : "Pin";
  return (
    <span className="flex flex-wrap items-center gap-1 sm:justify-end">
      <DialogButton
        row="previews.comment"
        aria-label={`Comment on ${called}`}
        dialog={<Comment slug={slug} preview={preview} />}
      >
        Comment
      </DialogButton>
      {commit !== null && (
        <DialogButton
          row="previews.promote"
          aria-label={`Promote ${called}`}
          dialog={<Promote slug={slug} preview={preview} />}
        >
          Promote
        </DialogButton>
      )}
      <ActionButton
        row={pin === "Unpin" ? "previews.unpin" : "previews.pin"}
        label={pin}
        aria-label={`${pin} ${called}`}
        input={{ params: { slug, preview: branch } }}
      />
      {removalIn(slug).button(preview)}
    </span>
  );
}

const removalIn = (slug: string) =>
  createRemoval({
    row: "previews.delete",
    title: "Delete a preview",
    verb: "Delete",
    nameOf: ({ branch }: Preview) => branch,
    input: ({ branch }) => ({ params: { slug, preview: branch } }),
    warning: "Its database, files and history are deleted for good; the branch stays in the repository.",
  });
