//go:build browser

package page_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
)

// shown are the reports that people see first.
func shown() map[string]*conformance.Report {
	return map[string]*conformance.Report{"conforming": sample(29, 9, -1), "failing": sample(29, 9, 18), "partial": partial()}
}

// A page loads without a complaint, asks for nothing, fits into narrow and wide
// windows, and has a picture taken in both themes.
func TestBrowserRenders(t *testing.T) {
	dir := screenshots()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	t.Logf("screenshots: %s", dir)
	for name, r := range shown() {
		t.Run(name, func(t *testing.T) {
			html := written(t, r)
			for _, width := range []int64{1280, 400} {
				tb := open(t, html, width, 900)
				assert.LessOrEqual(t, wider(tb), 0, "the page is wider than its window by so many pixels")
				for _, theme := range []string{"light", "dark"} {
					if theme == "dark" {
						tb.click("#theme")
						evaluate[chromedp.Void](tb, "scrollTo(0, 0); document.activeElement.blur()")
					}
					keepPicture(tb, filepath.Join(dir, fmt.Sprintf("%s-%s-%d.png", name, theme, width)))
				}
				tb.clean()
			}
		})
	}
}

// wider is by how many pixels a page is wider than its window.
func wider(tb *tab) int {
	return evaluate[int](tb, "document.documentElement.scrollWidth - document.documentElement.clientWidth")
}

// keepPicture keeps the window and the whole page.
func keepPicture(tb *tab, file string) {
	tb.t.Helper()
	for suffix, action := range map[string]chromedp.Action[[]byte]{".png": chromedp.CaptureScreenshot(), "-full.png": chromedp.FullScreenshot(100)} {
		picture, err := chromedp.Run(tb.ctx, action)
		require.NoError(tb.t, err)
		require.Greater(tb.t, len(picture), 10_000, "nothing is seen")
		require.NoError(tb.t, os.WriteFile(strings.TrimSuffix(file, ".png")+suffix, picture, 0o644))
	}
}

// What can complain must be heard: the harness fails a page that does.
func TestBrowserHearsComplaints(t *testing.T) {
	good := string(written(t, sample(3, 2, -1)))
	without := regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`).ReplaceAllString(good, "")
	require.NotEqual(t, good, without)
	for name, c := range map[string]struct {
		html, says string
		request    bool
	}{
		"a console error":    {strings.Replace(without, "</footer>", "</footer><script>console.error('planted')</script>", 1), "console: error", false},
		"an exception":       {strings.Replace(without, "</footer>", "</footer><script>nothing.at.all()</script>", 1), "exception: ", false},
		"a refused script":   {strings.Replace(good, "</footer>", "</footer><script>1</script>", 1), "Content Security Policy", false},
		"a picture":          {strings.Replace(without, "</footer>", "</footer><img src='http://127.0.0.1:9/x.png'>", 1), "", true},
		"our script, edited": {strings.Replace(good, `"use strict";`, `"use strict";;`, 1), "Content Security Policy", false},
	} {
		t.Run(name, func(t *testing.T) {
			complaints, requests := open(t, []byte(c.html), 800, 600).said()
			if c.request {
				assert.NotEmpty(t, requests)
				return
			}
			require.NotEmpty(t, complaints)
			assert.Contains(t, strings.Join(complaints, "\n"), c.says)
		})
	}
}

const casesTable = "#cases table"

// column is the text of a column of a table.
func column(tb *tab, table string, n int) []string {
	tb.t.Helper()
	return evaluate[[]string](tb, fmt.Sprintf("Array.from(document.querySelectorAll('%s tbody tr')).filter(r => !r.hidden).map(r => r.cells[%d].textContent.trim())", table, n))
}

// Tables sort by click and by keyboard, numbers as numbers, and say so.
func TestBrowserSorts(t *testing.T) {
	r := sample(29, 12, -1)
	i := 0
	for _, row := range []int{9, 10, 2, 28} {
		name := fmt.Sprintf("prompt_%03d_capital_of_country", i)
		c := r.Cases[name]
		c.FirstBadRow = &row
		r.Cases[name] = c
		i++
	}
	tb := open(t, written(t, r), 1280, 900)
	rows := func() []string { return column(tb, casesTable, 2)[:4] }
	said := func() string {
		return evaluate[string](tb, "document.querySelectorAll('"+casesTable+" thead th')[2].getAttribute('aria-sort')")
	}
	button := casesTable + " thead th:nth-child(3) button"
	assert.Equal(t, "none", said())
	tb.click(button)
	assert.Equal(t, []string{"2 (blocks.1.resid_post)", "9 (blocks.8.resid_post)", "10 (blocks.9.resid_post)", "28 (blocks.27.resid_post)"}, rows())
	assert.Equal(t, "ascending", said())
	tb.press(button, kb.Enter)
	assert.Equal(t, "descending", said())
	assert.Equal(t, []string{"none", "none"}, rows()[:2], "cases without a bad row have the largest key")
	names := "thead th:nth-child(1) button"
	tb.press(casesTable+" "+names, "  ")
	assert.Equal(t, "prompt_011_capital_of_country", column(tb, casesTable, 0)[0])
	assert.Equal(t, "none", said(), "one column at a time")
	tb.clean()
}

// The button changes the theme that is seen, and says what it does next.
func TestBrowserThemes(t *testing.T) {
	tb := open(t, written(t, sample(5, 2, 3)), 1000, 700)
	back := func() string { return evaluate[string](tb, "getComputedStyle(document.body).backgroundColor") }
	ink := func() string {
		return evaluate[string](tb, "getComputedStyle(document.querySelector('svg.plot text')).fill")
	}
	label := func() string { return evaluate[string](tb, "document.getElementById('theme').textContent") }
	light, lightInk := back(), ink()
	assert.Equal(t, "Dark theme", label())
	tb.click("#theme")
	assert.NotEqual(t, light, back())
	assert.NotEqual(t, lightInk, ink(), "drawings follow")
	assert.Equal(t, "Light theme", label())
	tb.press("#theme", kb.Enter)
	assert.Equal(t, light, back())
	call(tb, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
	evaluate[chromedp.Void](tb, "document.documentElement.removeAttribute('data-theme')")
	assert.NotEqual(t, light, back(), "the system's theme is followed")
	tb.clean()
}

func TestBrowserFilters(t *testing.T) {
	tb := open(t, written(t, sample(29, 9, 18)), 1280, 900)
	all := len(column(tb, "#finding-table", 0))
	tb.do(chromedp.SendKeys(chromedp.CSS("#filter"), "localerror blocks.17."), chromedp.Sleep(300*time.Millisecond))
	places := column(tb, "#finding-table", 2)
	require.Len(t, places, 9)
	for _, p := range places {
		assert.Contains(t, p, "blocks.17.resid_post")
	}
	assert.Equal(t, fmt.Sprintf("9 of %d shown", all), evaluate[string](tb, "document.getElementById('shown').textContent"))
	evaluate[chromedp.Void](tb, "document.getElementById('filter').select()")
	tb.do(chromedp.KeyEvent(kb.Backspace), chromedp.Sleep(300*time.Millisecond))
	assert.Len(t, column(tb, "#finding-table", 0), all)
	tb.clean()
}

// The switch of the maps works from the keyboard.
func TestBrowserSwitchesMaps(t *testing.T) {
	tb := open(t, written(t, sample(6, 2, 3)), 1000, 700)
	seen := func(id string) bool {
		return evaluate[bool](tb, "document.getElementById('"+id+"').offsetHeight > 0")
	}
	assert.True(t, seen("map-local"))
	assert.False(t, seen("map-accumulated"))
	tb.press("#m-local", kb.ArrowRight)
	assert.False(t, seen("map-local"))
	assert.True(t, seen("map-accumulated"))
	tb.clean()
}

// The command is copied as it is, by the button.
func TestBrowserCopies(t *testing.T) {
	r := sample(6, 2, 3)
	r.Reproduce = `plumbline gate --model 'a b' --candidate "c" <d>`
	tb := open(t, written(t, r), 1000, 700)
	tb.click("#copy")
	tb.do(chromedp.Sleep(200 * time.Millisecond))
	assert.Equal(t, r.Reproduce, evaluate[string](tb, "document.getElementById('repro').textContent"))
	assert.Equal(t, "copied", evaluate[string](tb, "document.getElementById('copied').textContent"))
	tb.clean()
}

// Every picture, table, region and control has a name for who doesn't see it.
func TestBrowserAccessibility(t *testing.T) {
	for name, r := range shown() {
		tb := open(t, written(t, r), 1280, 900)
		count := map[string]int{}
		call(tb, accessibility.Enable, cdp.Empty{})
		for _, n := range call(tb, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
			if n.Ignored || n.Role == nil {
				continue
			}
			switch role := strings.Trim(string(n.Role.Value), `"`); role {
			case "image", "img", "table", "region", "button", "link", "searchbox", "radio", "navigation":
				count[role]++
				named := n.Name != nil && strings.Trim(string(n.Name.Value), `" `) != ""
				assert.True(t, named, "%s: a %s without a name: %v", name, role, n.BackendDOMNodeID)
			}
		}
		assert.Positive(t, count["table"], name)
		assert.Positive(t, count["image"]+count["img"], name)
		assert.Positive(t, count["region"], name)
		assert.Equal(t, 1, evaluate[int](tb, "document.querySelectorAll('h1').length"), name)
		assert.Zero(t, evaluate[int](tb, `(() => { const seen = new Set(); let twice = 0; document.querySelectorAll('[id]').forEach(e => { if (seen.has(e.id)) twice++; seen.add(e.id) }); return twice })()`), "%s: an id twice", name)
		worst := evaluate[[]string](tb, contrasts)
		assert.Empty(t, worst, "%s: light", name)
		tb.click("#theme")
		assert.Empty(t, evaluate[[]string](tb, contrasts), "%s: dark", name)
		tb.clean()
	}
}

// contrasts lists texts whose colour is less than 4.5 times as bright, or dark, as
// what is behind them, by WCAG's formula.
const contrasts = `(() => {
  const rgba = s => { const m = s.match(/[\d.]+/g).map(Number); return m.length < 4 ? m.concat(1) : m };
  const lum = c => { const f = v => { v /= 255; return v <= 0.03928 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4) }; return 0.2126 * f(c[0]) + 0.7152 * f(c[1]) + 0.0722 * f(c[2]) };
  const behind = e => { for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] === 1) return c } return [255, 255, 255, 1] };
  const out = new Set();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.textContent.trim() || e.closest('script,style') || !e.offsetParent && !e.closest('svg')) continue;
    const s = getComputedStyle(e);
    const ink = rgba(e.closest('svg') ? s.fill : s.color), back = behind(e);
    const a = lum(ink), b = lum(back), c = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (c < 4.5) out.add(e.tagName + '.' + e.className + ' ' + s.color + ' on ' + back + ': ' + c.toFixed(2));
  }
  return [...out];
})()`

// Hostile texts are text: nothing runs, nothing is asked for, nothing gets wide.
func TestBrowserHostileNames(t *testing.T) {
	for _, text := range hostileTexts() {
		tb := open(t, written(t, hostile(text)), 400, 800)
		assert.False(t, evaluate[bool](tb, "'hit' in window"), "%.40q ran", text)
		assert.LessOrEqual(t, wider(tb), 0, "%.40q", text)
		assert.Equal(t, 1, evaluate[int](tb, "document.scripts.length"), "%.40q", text)
		tb.clean()
	}
}

// A hundred thousand findings leave a page that loads and filters.
func TestBrowserManyFindings(t *testing.T) {
	tb := open(t, written(t, many(100_000)), 1280, 900)
	tb.do(chromedp.SendKeys(chromedp.CSS("#filter"), "prompt"), chromedp.Sleep(500*time.Millisecond))
	assert.NotEmpty(t, column(tb, "#finding-table", 0))
	tb.clean()
}
