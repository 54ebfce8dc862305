// Builds the page as one file without any reference to another: ../python/loadlens/ui/page.html.
//
//   node build.mjs          writes it
//   node build.mjs --check  exits with 1 if the file there is another one
//   node build.mjs --tests  bundles tests/*.test.ts into build/, for node's own test runner
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const PAGE = here("../python/loadlens/ui/page.html");
const MOST_SCRIPT_BYTES = 100_000; // our own, next to the chart library

const bundle = (options) =>
  build({ bundle: true, absWorkingDir: here("."), logLevel: "warning", write: false, ...options });

async function page() {
  const [code, style] = await Promise.all([
    bundle({
      entryPoints: ["src/main.ts"],
      format: "iife",
      target: "es2022",
      minify: true,
      charset: "utf8",
      legalComments: "none",
      banner: { js: "/* Contains uPlot 1.6.32, Copyright (c) Leon Sorokin, MIT License, https://github.com/leeoniya/uPlot */" },
      metafile: true,
    }),
    bundle({ entryPoints: ["src/page.css"], minify: true, charset: "utf8", target: "chrome111" }),
  ]);
  const inputs = Object.values(code.metafile.outputs)[0].inputs;
  const own = Object.entries(inputs).reduce((sum, [path, { bytesInOutput }]) => sum + (path.startsWith("src/") ? bytesInOutput : 0), 0);
  if (own > MOST_SCRIPT_BYTES) throw new Error(`the page's own script is ${own} bytes, at most ${MOST_SCRIPT_BYTES}`);
  const script = code.outputFiles[0].text.trim().replaceAll("</script", "<\\/script");
  const html = readFileSync(here("src/page.html"), "utf8")
    .replace("/*style*/", () => style.outputFiles[0].text.trim())
    .replace("/*script*/", () => script);
  return { html, own };
}

if (process.argv.includes("--tests")) {
  const entryPoints = readdirSync(here("tests")).filter((name) => name.endsWith(".test.ts")).map((name) => `tests/${name}`);
  await bundle({ entryPoints, outdir: "build", platform: "node", format: "esm", write: true });
} else {
  const { html, own } = await page();
  if (process.argv.includes("--check")) {
    let committed = "";
    try {
      committed = readFileSync(PAGE, "utf8");
    } catch {
      // built for the first time: it differs
    }
    if (committed !== html) {
      console.error("python/loadlens/ui/page.html is not what web/ builds: run `make page` and commit the file");
      process.exit(1);
    }
  } else {
    mkdirSync(here("../python/loadlens/ui"), { recursive: true });
    writeFileSync(PAGE, html);
    console.log(`page.html: ${html.length} bytes, ${own} of them our own script`);
  }
}
