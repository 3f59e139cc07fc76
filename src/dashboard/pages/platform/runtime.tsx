import { Link } from "@tanstack/react-router";
import { useCall, useMe, useWhyNot } from "../../data/api.ts";
import { textOf, SelectField } from "../../ui/field.tsx";
import { ActionDialog } from "../../ui/action-dialog.tsx";
import { DialogButton } from "../../ui/button.tsx";
import { Section, View } from "../../ui/page.tsx";
import { State, Ago, Fact, Mono } from "../../ui/text.tsx";

/** Shows in which runtime the project's replicas run, and lets the operator move them. Hidden from other users. */
export function Runtime({ slug }: { readonly slug: string }) {
  return useWhyNot("platform.runtime") === undefined ? <OperatorsRuntime slug={slug} /> : null;
}

function OperatorsRuntime({ slug }: { readonly slug: string }) {
  const params = { org: useMe().organization.slug, slug };
  const runtime = useCall("platform.runtime", { params });
  const refused = useWhyNot("platform.move");
  const available = runtime.data?.available ?? [];
  const why = available.length < 2 ? "This platform has one runtime." : (refused ?? notLive(runtime.data?.runtime));
  return (
    <Section
      title="Runtime"
      lead="What the project's replicas run in. Only the operator sees and changes it."
      actions={
        <DialogButton why={why} dialog={<MoveDialog slug={slug} />}>
          Move
        </DialogButton>
      }
    >
      <View of={runtime}>
        {({ runtime: present, available: all, move }) => (
          <dl className="grid gap-x-6 gap-y-4 rounded-md border border-line p-4 sm:grid-cols-3">
            <Fact label="Runs in">{present ?? <span className="text-faint">nothing is live</span>}</Fact>
            <Fact label="Runtimes of the platform">{all.join(", ")}</Fact>
            <Fact label="Last move">
              {move === null ? (
                <span className="text-faint">none</span>
              ) : (
                <Link
                  to="/projects/$slug/builds/$id"
                  params={{ slug, id: move.build_id }}
                  className="hover:text-accent"
                >
                  <State of={states[move.status]} /> to {move.to}, <Ago at={move.requested_at} />
                </Link>
              )}
            </Fact>
          </dl>
        )}
      </View>
    </Section>
  );
}

export function MoveDialog({ slug }: { readonly slug: string }) {
  const params = { org: useMe().organization.slug, slug };
  const { data } = useCall("platform.runtime", { params });
  if (data === undefined) return null;
  const others = data.available.filter((each) => each !== data.runtime);
  const why = others.length === 0 ? "This platform has one runtime." : notLive(data.runtime);
  return (
    <ActionDialog
      row="platform.move"
      title={`Move ${slug} to another runtime`}
      submit="Move"
      why={why}
      input={(form) => ({ params, body: { runtime: textOf(form, "runtime") } })}
    >
      <SelectField name="runtime" label="Runtime" options={others.map((each) => [each, each])} />
      <p className="text-sm text-muted">
        The live commit is built for it, started beside the present deployment, checked for health, then switched to. If
        it does not become healthy, <Mono>{data.runtime ?? ""}</Mono> goes on serving.
      </p>
    </ActionDialog>
  );
}

const states = { building: "running", deploying: "starting", done: "succeeded", failed: "failed" } as const;

function notLive(runtime: string | null | undefined): string | undefined {
  return runtime === null ? "Nothing is live yet." : undefined;
}
