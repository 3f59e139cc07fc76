import assert from "node:assert/strict";
import { test } from "node:test";
import { rubyPlan } from "./ruby-plan.ts";
import { startCommand, testTree } from "../../test/support/source-tree.ts";

const plan = (source: Record<string, string>) => rubyPlan(testTree(source), "3.1.2");
const command = (source: Record<string, string>) => startCommand(plan(source));
const gems = (...names: string[]) => names.map((name) => `gem "${name}"\n`).join("");

test("puma, Rails, rackup or the script serves, by Bundler where there is a Gemfile", () => {
  assert.equal(command({ Gemfile: gems("puma"), "config.ru": "" }), "bundle exec puma --bind tcp://0.0.0.0:$PORT");
  assert.match(
    command({ Gemfile: gems("rails"), "config/application.rb": "", "config.ru": "" }),
    /rails server .*\$PORT/,
  );
  assert.equal(command({ "config.ru": "" }), "rackup --host 0.0.0.0 --port $PORT");
  assert.equal(command({ Gemfile: gems("sinatra"), "app.rb": "" }), "bundle exec ruby app.rb -o 0.0.0.0 -p $PORT");
  assert.throws(() => command({ Gemfile: "" }), { code: "no_start_command" });
});

test("a Gemfile with Jekyll is a site that Jekyll builds, unless something serves it", () => {
  for (const gem of ["jekyll", "github-pages"]) {
    const { build, start, name } = plan({ Gemfile: `  gem '${gem}', "~> 4.3"\n`, "_config.yml": "" });
    assert.deepEqual(
      build.map(({ args }) => args.join(" ")),
      ["bundle exec jekyll build --destination _site"],
    );
    assert.equal(build[0]?.env["JEKYLL_ENV"], "production");
    assert.equal(startCommand({ start }), "static");
    assert.equal(name, "Jekyll site");
  }
  assert.equal(command({ Gemfile: gems("jekyll"), "config.ru": "" }), "bundle exec rackup --host 0.0.0.0 --port $PORT");
  assert.equal(plan({ Gemfile: gems("jekyll-watch", "rails"), "config/application.rb": "" }).build.length, 0);
});

test("gems are kept by the lock file; those in the repository are used without a registry", () => {
  const locked = { Gemfile: gems("puma"), "Gemfile.lock": "a", "config.ru": "" };
  assert.notEqual(plan(locked).install?.inputs ?? null, null);
  assert.notDeepEqual(plan(locked).install?.inputs, plan({ ...locked, "Gemfile.lock": "b" }).install?.inputs);
  assert.equal(plan({ ...locked, Gemfile: `gem "x", path: "x"` }).install?.inputs, null);
  assert.equal(plan(locked).install?.steps[0]?.env["BUNDLE_FROZEN"], "true");
  const vendored = plan({ ...locked, "vendor/bundle/ruby/3.1.0/gems/puma/x.rb": "" });
  assert.ok(vendored.install?.steps[0]?.args.includes("--local"));
  assert.equal(vendored.env["BUNDLE_PATH"], "/app/vendor/bundle");
  assert.equal(plan({ ...locked, "vendor/javascript/x.js": "" }).env["BUNDLE_PATH"], undefined);
});

test("the machine's Ruby must be of the minor version that is asked for", () => {
  plan({ Gemfile: `ruby "3.1.4"`, "config.ru": "" });
  plan({ ".ruby-version": "3.1.0\n", "config.ru": "" });
  assert.throws(() => plan({ Gemfile: `ruby "~> 3.3"` }), { code: "ruby_version_unavailable" });
  assert.throws(() => plan({ ".ruby-version": "ruby-2.7.8" }), { code: "ruby_version_unavailable" });
});
