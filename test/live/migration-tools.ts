/** A migration tool as its users run it: files around a migration, and the command. The folder of its packages is the parent. */
export interface MigrationTool {
  readonly name: string;
  readonly packages: readonly string[];
  /** Where its packages are; npm's registry if absent. */
  readonly from?: "pypi" | "debian" | "maven";
  readonly files?: Readonly<Record<string, string>>;
  /** A program of the packages, and its arguments. */
  readonly command: readonly [string, ...string[]];
  /** Lines about its own table. */
  readonly noted: readonly RegExp[];
  readonly migrations: readonly RealMigration[];
}

export interface RealMigration {
  readonly what: string;
  readonly files: Readonly<Record<string, string>>;
  /** What the report must say of each table; a group `held` is at least the second for which the migration sleeps. */
  readonly lines: readonly RegExp[];
  /** Tables whose loss a person must approve. */
  readonly losses: readonly string[];
}

const line = (text: string) => new RegExp(`^${text}$`);
const held = (what: string) => String.raw`${what} blocked for (?<held>[\d.]+) s \(longest: .+?\), `;
const both = held("reads and writes");
const writes = held("writes");
const second = "select pg_sleep(1)";
/** Locked for an instant, which one sample in some runs meets. */
const maybe = String.raw`(?:(?:reads and )?writes blocked for 0\.\d s \(longest: .+?\), )?`;

const inJs = (body: string) => ({ "m/1700000000000_change.js": body });
const knex = (body: string) => inJs(`exports.up = async (knex) => {\n${body}\n};\nexports.down = async () => {};\n`);
const nodePgMigrate = (body: string) => inJs(`exports.up = (pgm) => {\n${body}\n};\nexports.down = false;\n`);
const typeorm = (body: string) =>
  inJs(
    `const { TableColumn } = require("typeorm");\nexports.Change1700000000000 = class Change1700000000000 {\nname = "Change1700000000000";\nasync up(runner) {\n${body}\n}\nasync down() {}\n};\n`,
  );
const drizzle = (...statements: string[]) => ({
  "m/0000_change.sql": statements.join("\n--> statement-breakpoint\n"),
  "m/meta/_journal.json": `{"version":"7","dialect":"postgresql","entries":[{"idx":0,"version":"7","when":1700000000000,"tag":"0000_change","breakpoints":true}]}`,
});

const django = (operations: string, before = "") => ({
  "shop/migrations/0002_change.py": `from django.db import migrations, models\n${before}
class Migration(migrations.Migration):\n    dependencies = [("shop", "0001_initial")]\n    operations = [${operations}]\n`,
});
const sleeps = `migrations.RunSQL("${second}")`;
const alembic = (body: string) => ({
  "m/versions/2b3c_change.py": `from alembic import op\nimport sqlalchemy as sa\nrevision = "2b3c"\ndown_revision = "1a2b"\n
def upgrade():\n${body.replace(/^/gm, "    ")}\n`,
});

const prisma = (sql: string) => ({ "prisma/migrations/20240101000000_change/migration.sql": sql });
const rails = (body: string, before = "") => ({
  "m/20240101000000_change.rb": `class Change < ActiveRecord::Migration[6.1]\n${before}\ndef up\n${body}\nend\nend\n`,
});
const flyway = (sql: string) => ({ "m/V2__change.sql": sql });

export const migrationTools: readonly MigrationTool[] = [
  {
    name: "Knex",
    packages: ["knex@3.1.0"],
    files: {
      "knexfile.js": `module.exports = { client: "pg", connection: process.env.DATABASE_URL, migrations: { directory: "./m" } };`,
    },
    command: ["knex", "migrate:latest"],
    noted: [line("knex_migrations: 1 row more"), line("knex_migrations_lock: 1 row updated")],
    migrations: [
      {
        what: "a type change",
        files: knex(
          `await knex.schema.alterTable("orders", (t) => t.bigInteger("customer").notNullable().alter()); await knex.raw("${second}");`,
        ),
        lines: [line(`orders: ${both}20,000 rows rewritten, column customer is now bigint not null`)],
        losses: [],
      },
      {
        what: "a renamed column",
        files: knex(
          `await knex.schema.alterTable("orders", (t) => t.renameColumn("note", "title")); await knex.raw("${second}");`,
        ),
        lines: [line(`orders: ${both}column note renamed to title`)],
        losses: [],
      },
      {
        what: "a dropped column",
        files: knex(`await knex.schema.alterTable("orders", (t) => t.dropColumn("note"));`),
        lines: [line(`orders: ${maybe}column note dropped`)],
        losses: ["public.orders"],
      },
      {
        what: "an index, and rows that are deleted",
        files: knex(
          `await knex.schema.alterTable("orders", (t) => t.index(["customer"])); await knex("customers").where("id", ">", 450).del(); await knex.raw("${second}");`,
        ),
        lines: [line("customers: 50 rows removed"), line(`orders: ${writes}index orders_customer_index added`)],
        losses: ["public.customers"],
      },
    ],
  },
  {
    name: "Drizzle",
    packages: ["drizzle-orm@0.44.7", "pg@8.23.1"],
    files: {
      "migrate.js": `const { drizzle } = require("drizzle-orm/node-postgres");
const { migrate } = require("drizzle-orm/node-postgres/migrator");
const client = new (require("pg").Client)({ connectionString: process.env.DATABASE_URL });
client.connect().then(() => migrate(drizzle(client), { migrationsFolder: "./m" })).then(() => client.end());`,
    },
    command: ["node", "migrate.js"],
    noted: [line("drizzle.__drizzle_migrations: 1 row more")],
    migrations: [
      {
        what: "a column with a volatile default",
        files: drizzle(`ALTER TABLE "orders" ADD COLUMN "token" uuid DEFAULT gen_random_uuid() NOT NULL;`, second),
        lines: [line(`orders: ${both}20,000 rows rewritten, column token added`)],
        losses: [],
      },
      {
        what: "a table, and a value for an enum",
        files: drizzle(
          `ALTER TYPE "public"."status" ADD VALUE 'sent';`,
          `CREATE TABLE "plans" ("id" serial PRIMARY KEY NOT NULL, "order" integer);`,
        ),
        lines: [line("plans: new, 0 rows")],
        losses: [],
      },
      {
        what: "a dropped table and what refers to it",
        files: drizzle(`DROP TABLE "orders" CASCADE;`),
        lines: [
          line(`items: ${maybe}constraint items_order_id_fkey dropped`),
          line(`orders: ${maybe}dropped with 20,000 rows`),
        ],
        losses: ["public.orders"],
      },
      {
        what: "rows that are changed under a lock",
        files: drizzle(
          `ALTER TABLE "orders" ALTER COLUMN "total" SET DEFAULT 0;`,
          `UPDATE "orders" SET "total" = 0;`,
          second,
        ),
        lines: [line(`orders: ${both}20,000 rows updated`)],
        losses: [],
      },
    ],
  },
  {
    name: "node-pg-migrate",
    packages: ["node-pg-migrate@8.0.3", "pg@8.23.1"],
    command: ["node-pg-migrate", "up", "-m", "m"],
    noted: [line("pgmigrations: 1 row more")],
    migrations: [
      {
        what: "a unique constraint",
        files: nodePgMigrate(
          `pgm.addConstraint("customers", "customers_email_key", { unique: "email" }); pgm.sql("${second}");`,
        ),
        lines: [line(`customers: ${both}constraint customers_email_key added`)],
        losses: [],
      },
      {
        what: "an index that blocks nobody",
        files: nodePgMigrate(`pgm.noTransaction(); pgm.createIndex("orders", "note", { concurrently: true });`),
        lines: [line("orders: index orders_note_index added")],
        losses: [],
      },
      {
        what: "a dropped table",
        files: nodePgMigrate(`pgm.dropTable("archive");`),
        lines: [line(`archive: ${maybe}dropped with 300 rows`)],
        losses: ["public.archive"],
      },
      {
        what: "a column, filled with an update",
        files: nodePgMigrate(
          `pgm.addColumn("orders", { gross: { type: "int" } }); pgm.sql("update orders set gross = total"); pgm.sql("${second}");`,
        ),
        lines: [line(`orders: ${both}20,000 rows updated, column gross added`)],
        losses: [],
      },
    ],
  },
  {
    name: "TypeORM",
    packages: ["typeorm@0.3.27", "pg@8.23.1"],
    files: {
      "source.js": `const { DataSource } = require("typeorm");
module.exports = new DataSource({ type: "postgres", url: process.env.DATABASE_URL, migrations: ["m/*.js"] });`,
    },
    command: ["typeorm", "migration:run", "-d", "source.js"],
    noted: [line("migrations: new, 1 row")],
    migrations: [
      {
        what: "a column",
        files: typeorm(
          `await runner.addColumn("orders", new TableColumn({ name: "region", type: "text", default: "'eu'" })); await runner.query("${second}");`,
        ),
        lines: [line(`orders: ${both}column region added`)],
        losses: [],
      },
      {
        what: "a type change, for which it drops the column",
        files: typeorm(
          `const table = await runner.getTable("archive"); const column = table.findColumnByName("body").clone(); column.type = "varchar"; await runner.changeColumn(table, "body", column);`,
        ),
        lines: [line(`archive: ${maybe}column body dropped, column body added`)],
        losses: ["public.archive"],
      },
      {
        what: "a renamed table",
        files: typeorm(`await runner.renameTable("archive", "old_archive"); await runner.query("${second}");`),
        lines: [/^archive: (?:reads and writes blocked for (?<held>[\d.]+) s \(longest: .+?\), )?renamed$/],
        losses: [],
      },
      {
        what: "rows that are deleted, with those that refer to them",
        files: typeorm(`await runner.query("delete from orders where id > 15000");`),
        lines: [line("items: 5,000 rows removed"), line("orders: 5,000 rows removed")],
        losses: ["public.items", "public.orders"],
      },
    ],
  },
  {
    name: "Django",
    packages: ["django==5.2.*", "psycopg[binary]"],
    from: "pypi",
    files: {
      "manage.py": `import os, sys\nos.environ["DJANGO_SETTINGS_MODULE"] = "settings"\nfrom django.core.management import execute_from_command_line\nexecute_from_command_line(sys.argv)\n`,
      "settings.py": `import os\nfrom urllib.parse import urlsplit\nat = urlsplit(os.environ["DATABASE_URL"])
SECRET_KEY = "of a test"\nINSTALLED_APPS = ["shop"]\nUSE_TZ = True
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": at.path[1:], "USER": at.username, "PASSWORD": at.password, "HOST": at.hostname, "PORT": at.port}}\n`,
      "shop/__init__.py": "",
      "shop/migrations/__init__.py": "",
      "shop/migrations/0001_initial.py": `from django.db import migrations, models
class Migration(migrations.Migration):
    initial = True
    operations = [migrations.SeparateDatabaseAndState(state_operations=[
        migrations.CreateModel("Order", [("id", models.IntegerField(primary_key=True)), ("customer", models.IntegerField()), ("note", models.TextField(null=True)), ("total", models.IntegerField(null=True))], {"db_table": "orders"}),
        migrations.CreateModel("Archive", [("id", models.IntegerField(primary_key=True)), ("body", models.TextField(null=True))], {"db_table": "archive"}),
    ])]
`,
    },
    command: ["python", "manage.py", "migrate"],
    noted: [line("django_migrations: 2 rows more")],
    migrations: [
      {
        what: "a type change with an index",
        files: django(`migrations.AlterField("order", "customer", models.BigIntegerField(db_index=True)), ${sleeps}`),
        lines: [
          new RegExp(
            `^orders: ${both}20,000 rows rewritten, column customer is now bigint not null, index orders_customer_\\w+ added$`,
          ),
        ],
        losses: [],
      },
      {
        what: "a field with a default, and RunPython that changes every row",
        files: django(
          `migrations.AddField("order", "gross", models.IntegerField(default=0)), migrations.RunPython(fill), ${sleeps}`,
          `def fill(apps, editor):\n    apps.get_model("shop", "Order").objects.update(gross=models.F("total"), note="a secret")\n`,
        ),
        lines: [line(`orders: ${both}20,000 rows updated, column gross added`)],
        losses: [],
      },
      {
        what: "a removed model",
        files: django(`migrations.DeleteModel("Archive")`),
        lines: [line(`archive: ${maybe}dropped with 300 rows`)],
        losses: ["public.archive"],
      },
      {
        what: "a removed field",
        files: django(`migrations.RemoveField("order", "note"), ${sleeps}`),
        lines: [line(`orders: ${both}column note dropped`)],
        losses: ["public.orders"],
      },
    ],
  },
  {
    name: "Alembic",
    packages: ["alembic", "psycopg[binary]"],
    from: "pypi",
    files: {
      "alembic.ini": "[alembic]\nscript_location = m\n",
      "m/env.py": `import os
from alembic import context
from sqlalchemy import create_engine
with create_engine(os.environ["DATABASE_URL"].replace("postgres://", "postgresql+psycopg://")).connect() as connection:
    context.configure(connection=connection)
    with context.begin_transaction():
        context.run_migrations()
`,
      "m/versions/1a2b_first.py": `revision = "1a2b"\ndown_revision = None\ndef upgrade():\n    pass\n`,
    },
    command: ["alembic", "upgrade", "head"],
    noted: [line("alembic_version: 1 row updated")],
    migrations: [
      {
        what: "a foreign key",
        files: alembic(
          `op.create_foreign_key("fk", "orders", "customers", ["customer"], ["id"])\nop.execute("${second}")`,
        ),
        lines: [
          new RegExp(`^customers: ${writes.replace(/, $/, "")}(?:, trigger \\S+ added)*$`),
          new RegExp(`^orders: ${writes}constraint fk added(?:, trigger \\S+ added)*$`),
        ],
        losses: [],
      },
      {
        what: "a type change",
        files: alembic(
          `op.alter_column("orders", "total", type_=sa.BigInteger(), existing_type=sa.Integer())\nop.execute("${second}")`,
        ),
        lines: [line(`orders: ${both}20,000 rows rewritten, column total is now bigint`)],
        losses: [],
      },
      {
        what: "a table that batch mode creates again",
        files: alembic(
          `with op.batch_alter_table("archive", recreate="always") as batch:\n    batch.add_column(sa.Column("extra", sa.Integer()))`,
        ),
        lines: [line(`archive: ${maybe}300 rows rewritten(?:, column extra added)?`)],
        losses: [],
      },
      {
        what: "a dropped column and rows",
        files: alembic(`op.drop_column("orders", "note")\nop.execute("delete from items where id > 19000")`),
        lines: [line("items: 1,000 rows removed"), line(`orders: ${maybe}column note dropped`)],
        losses: ["public.items", "public.orders"],
      },
    ],
  },
  {
    name: "Prisma",
    packages: ["prisma@6.19.3", "@prisma/adapter-pg@7.10.1"],
    files: {
      // The packages hold its engine for migrations in WebAssembly, but not the two programs that it downloads otherwise.
      "engines.js": `Object.assign(process.env, { PRISMA_QUERY_ENGINE_LIBRARY: __filename, PRISMA_SCHEMA_ENGINE_BINARY: __filename, CHECKPOINT_DISABLE: "1" });`,
      "prisma.config.ts": `import { defineConfig } from "prisma/config";\nimport { PrismaPg } from "@prisma/adapter-pg";
export default defineConfig({ experimental: { adapter: true }, engine: "js", schema: "prisma/schema.prisma",
  adapter: async () => new PrismaPg({ connectionString: process.env.DATABASE_URL }) });\n`,
      "prisma/schema.prisma": `datasource db {\n  provider = "postgresql"\n  url = env("DATABASE_URL")\n}\n`,
      "prisma/migrations/migration_lock.toml": `provider = "postgresql"\n`,
    },
    command: ["node", "--require", "./engines.js", "../node_modules/prisma/build/index.js", "migrate", "deploy"],
    noted: [line("_prisma_migrations: 1 row more")],
    migrations: [
      {
        what: "a type change",
        files: prisma(`ALTER TABLE "orders" ALTER COLUMN "customer" SET DATA TYPE BIGINT;\n`),
        lines: [line(`orders: ${maybe}20,000 rows rewritten, column customer is now bigint not null`)],
        losses: [],
      },
      {
        what: "a renamed field, which drops the column",
        files: prisma(`ALTER TABLE "orders" DROP COLUMN "note", ADD COLUMN "title" TEXT;\n`),
        lines: [line(`orders: ${maybe}column note dropped, column title added`)],
        losses: ["public.orders"],
      },
      {
        what: "a unique index, and rows that are changed",
        files: prisma(
          `CREATE UNIQUE INDEX "customers_email_key" ON "customers"("email");\nUPDATE "orders" SET "total" = 0;\n`,
        ),
        lines: [
          line(`customers: ${maybe}index customers_email_key added`),
          line(`orders: ${maybe}20,000 rows updated`),
        ],
        losses: [],
      },
      {
        what: "a dropped table",
        files: prisma(`DROP TABLE "archive";\n`),
        lines: [line(`archive: ${maybe}dropped with 300 rows`)],
        losses: ["public.archive"],
      },
    ],
  },
  {
    name: "Rails",
    packages: [
      ...["ruby-activerecord", "ruby-activemodel", "ruby-activesupport", "ruby-pg", "ruby-tzinfo"],
      ...["ruby-i18n", "ruby-concurrent", "ruby-zeitwerk", "ruby-minitest"],
    ],
    from: "debian",
    files: {
      "migrate.rb": `within = ->(pattern) { Dir["../usr/" + pattern].map { |dir| File.expand_path(dir) } }
Gem.use_paths(Gem.dir, Gem.path + within["share/rubygems-integration/*"])
$LOAD_PATH.concat(within["lib/ruby/vendor_ruby"], within["lib/*/ruby/vendor_ruby/*"])
require "active_record"
ActiveRecord::Base.establish_connection(ENV["DATABASE_URL"])
ActiveRecord::MigrationContext.new("m", ActiveRecord::SchemaMigration).migrate\n`,
    },
    command: ["ruby", "migrate.rb"],
    noted: [line("ar_internal_metadata: 1 row more"), line("schema_migrations: 1 row more")],
    migrations: [
      {
        what: "a type change",
        files: rails(`change_column :orders, :customer, :bigint\nexecute "${second}"`),
        lines: [line(`orders: ${both}20,000 rows rewritten, column customer is now bigint not null`)],
        losses: [],
      },
      {
        what: "an index that blocks nobody",
        files: rails("add_index :orders, :note, algorithm: :concurrently", "disable_ddl_transaction!"),
        lines: [line("orders: index index_orders_on_note added")],
        losses: [],
      },
      {
        what: "a foreign key",
        files: rails(`add_foreign_key :orders, :customers, column: :customer\nexecute "${second}"`),
        lines: [
          new RegExp(`^customers: ${writes.replace(/, $/, "")}(?:, trigger \\S+ added)*$`),
          new RegExp(`^orders: ${writes}constraint fk_rails_\\w+ added(?:, trigger \\S+ added)*$`),
        ],
        losses: [],
      },
      {
        what: "a removed column, and a dropped table",
        files: rails("remove_column :orders, :note\ndrop_table :archive"),
        lines: [line(`archive: ${maybe}dropped with 300 rows`), line(`orders: ${maybe}column note dropped`)],
        losses: ["public.archive", "public.orders"],
      },
    ],
  },
  {
    name: "Flyway",
    packages: ["org.flywaydb:flyway-database-postgresql:10.22.0", "org.postgresql:postgresql:42.7.4"],
    from: "maven",
    files: {
      "Migrate.java": `import java.net.URI;
import org.flywaydb.core.Flyway;
class Migrate {
  public static void main(String[] given) {
    URI at = URI.create(System.getenv("DATABASE_URL"));
    String[] login = at.getUserInfo().split(":");
    String url = "jdbc:postgresql://" + at.getHost() + ":" + at.getPort() + at.getPath();
    Flyway.configure().dataSource(url, login[0], login[1]).locations("filesystem:m").load().migrate();
  }
}\n`,
    },
    command: ["java", "-cp", "../jars/*", "Migrate.java"],
    noted: [new RegExp(`^flyway_schema_history: (?:${writes})?1 row more$`)],
    migrations: [
      {
        what: "a type change",
        files: flyway(`ALTER TABLE orders ALTER COLUMN customer TYPE bigint;\n${second};\n`),
        lines: [line(`orders: ${both}20,000 rows rewritten, column customer is now bigint not null`)],
        losses: [],
      },
      {
        what: "a table that is emptied and filled again",
        files: flyway("TRUNCATE archive; INSERT INTO archive SELECT n, 'new' FROM generate_series(1, 300) n;"),
        lines: [line(`archive: ${maybe}300 rows rewritten, 300 rows removed`)],
        losses: ["public.archive"],
      },
      {
        what: "a column, filled with an update",
        files: flyway(`ALTER TABLE orders ADD gross int; UPDATE orders SET gross = total;\n${second};\n`),
        lines: [line(`orders: ${both}20,000 rows updated, column gross added`)],
        losses: [],
      },
      {
        what: "a dropped table",
        files: flyway("DROP TABLE archive;"),
        lines: [line(`archive: ${maybe}dropped with 300 rows`)],
        losses: ["public.archive"],
      },
    ],
  },
];
