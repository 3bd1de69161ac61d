package plot_test

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"

	"github.com/plumbline-go/plumbline/conformance/report/plot"
)

func depth() plot.Depth {
	return plot.Depth{Title: "Local error", X: "row", Y: "ratio", Median: []float64{math.NaN(), 1, 20, 3}, Worst: []float64{math.NaN(), 1.2, 40, math.Inf(1)},
		MedianLimit: 2, WorstLimit: 3, Bad: 2}
}

func points() plot.Points {
	return plot.Points{Title: "Margins", X: "margin", Y: "regret", Band: 0.3, BandName: "tie band",
		Classes: []plot.PointClass{{Name: "MATCH", XY: [][2]float64{{1, 0}, {0.5, 0}}}, {Name: "TIE", XY: [][2]float64{{0.1, 0.1}}}, {Name: "DRIFT"}, {Name: "WRONG", XY: [][2]float64{{3, 4}, {math.NaN(), 1}}}}}
}

func inline(t *testing.T, draw func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, draw(&b))
	require.True(t, strings.HasPrefix(b.String(), "<svg "), "%.60s", b.String())
	d := xml.NewDecoder(bytes.NewReader(b.Bytes()))
	for {
		if _, err := d.Token(); err != nil {
			require.ErrorIs(t, err, io.EOF)
			return b.String()
		}
	}
}

// An inline drawing has no colour of its own that a theme can't change, and no font.
func TestInlineFollowsTheTheme(t *testing.T) {
	for name, draw := range map[string]func(io.Writer) error{
		"depth":   func(w io.Writer) error { return plot.ByDepth(w, plot.Inline, depth()) },
		"scatter": func(w io.Writer) error { return plot.Scatter(w, plot.Inline, points()) },
		"bars": func(w io.Writer) error {
			h := histogram()
			h.Mark, h.MarkName = 1.5, "tie band"
			h.Series = append(h.Series, plot.Series{Name: "third", Counts: []int{1, 1, 1}})
			return plot.Bars(w, plot.Inline, h)
		},
	} {
		svg := inline(t, draw)
		assert.NotContains(t, svg, "font-family", name)
		assert.NotContains(t, svg, "@font-face", name)
		bare := regexp.MustCompile(`var\(--plot-[a-z0-9-]+,#[0-9A-F]{6}\)`).ReplaceAllString(svg, "")
		assert.NotRegexp(t, `#[0-9A-Fa-f]{6}`, bare, name)
		for _, text := range regexp.MustCompile(`<text [^>]*>`).FindAllString(svg, -1) {
			assert.Contains(t, text, "var(--plot-ink", name)
		}
	}
}

func TestByDepthShowsBudgets(t *testing.T) {
	draw := func(d plot.Depth) string {
		return inline(t, func(w io.Writer) error { return plot.ByDepth(w, plot.Inline, d) })
	}
	all := draw(depth())
	for _, want := range []string{"limit of the median, 2", "limit of one case, 3", "worst case", "median over the cases", "Local error", "--plot-band,", "--plot-band-2,", "--plot-bad,"} {
		assert.Contains(t, all, want)
	}
	without := depth()
	without.MedianLimit, without.WorstLimit, without.Bad = 0, 0, -1
	for _, no := range []string{"limit of", "--plot-band", "--plot-bad,"} {
		assert.NotContains(t, draw(without), no)
	}
	nothing := plot.Depth{Median: []float64{math.NaN()}, Worst: []float64{math.NaN()}, Bad: -1}
	draw(nothing)
}

// Each class has a mark of its own: three strokes of one place differ.
func TestScatterTellsClassesByShape(t *testing.T) {
	shapes := map[string]bool{}
	for class := range 4 {
		p := plot.Points{Classes: make([]plot.PointClass, 4)}
		p.Classes[class].XY = [][2]float64{{1, 1}}
		svg := inline(t, func(w io.Writer) error { return plot.Scatter(w, plot.Inline, p) })
		paths := regexp.MustCompile(`d="([^"]*)"`).FindAllStringSubmatch(svg, -1)
		shapes[paths[len(paths)-1-(3-class)][1]] = true
	}
	assert.Len(t, shapes, 4)
	svg := inline(t, func(w io.Writer) error { return plot.Scatter(w, plot.Inline, points()) })
	for _, want := range []string{"MATCH (2)", "WRONG (2)", "DRIFT (0)", "tie band"} {
		assert.Contains(t, svg, want)
	}
}

func TestDepthAndScatterRefuse(t *testing.T) {
	for name, change := range map[string]func(*plot.Depth){
		"nothing": func(d *plot.Depth) { *d = plot.Depth{Bad: -1} }, "few": func(d *plot.Depth) { d.Worst = d.Worst[1:] },
		"a bad row beyond": func(d *plot.Depth) { d.Bad = 4 }, "a limit": func(d *plot.Depth) { d.WorstLimit = math.NaN() },
	} {
		d := depth()
		change(&d)
		assert.ErrorContains(t, plot.ByDepth(io.Discard, plot.Inline, d), "plot: depth: ", name)
	}
	for name, change := range map[string]func(*plot.Points){
		"nothing": func(p *plot.Points) { p.Classes = nil }, "many": func(p *plot.Points) { p.Classes = make([]plot.PointClass, 5) },
		"a negative": func(p *plot.Points) { p.Classes[0].XY[0][1] = -1 },
	} {
		p := points()
		change(&p)
		assert.ErrorContains(t, plot.Scatter(io.Discard, plot.Inline, p), "plot: points: ", name)
	}
	assert.Error(t, plot.ByDepth(failing{}, plot.Inline, depth()))
	assert.Error(t, plot.Scatter(failing{}, plot.SVG, points()))
}

// The reduced font has each character with the outline and the width of gonum's own,
// as another reader of fonts sees them.
func TestFontFace(t *testing.T) {
	css, err := plot.FontFace()
	require.NoError(t, err)
	assert.Less(t, len(css), 40_000)
	data := regexp.MustCompile(`base64,([A-Za-z0-9+/=]+)\)`).FindStringSubmatch(css)
	require.NotNil(t, data)
	ttf, err := base64.StdEncoding.DecodeString(data[1])
	require.NoError(t, err)
	small, err := sfnt.Parse(ttf)
	require.NoError(t, err)
	var whole bytes.Buffer
	require.NoError(t, plot.WriteInlineFont(&whole))
	full, err := sfnt.Parse(whole.Bytes())
	require.NoError(t, err)
	var b sfnt.Buffer
	outline := func(f *sfnt.Font, r rune) (sfnt.Segments, fixed.Int26_6) {
		id, err := f.GlyphIndex(&b, r)
		require.NoError(t, err)
		require.NotZero(t, id, "%q", r)
		ppem := fixed.I(2048)
		s, err := f.LoadGlyph(&b, id, ppem, nil)
		require.NoError(t, err, "%q", r)
		s = append(sfnt.Segments{}, s...)
		w, err := f.GlyphAdvance(&b, id, ppem, 0)
		require.NoError(t, err)
		return s, w
	}
	for r := ' '; r <= '~'; r++ {
		want, wide := outline(full, r)
		got, w := outline(small, r)
		require.Equal(t, want, got, "%q", r)
		require.Equal(t, wide, w, "%q", r)
	}
	id, err := small.GlyphIndex(&b, 'é')
	require.NoError(t, err)
	assert.Zero(t, id)
}

func TestReduceFontRefuses(t *testing.T) {
	var whole bytes.Buffer
	require.NoError(t, plot.WriteInlineFont(&whole))
	for name, ttf := range map[string][]byte{"nothing": nil, "a header": whole.Bytes()[:12], "half": whole.Bytes()[:100_000], "text": []byte(strings.Repeat("no font ", 40))} {
		_, err := plot.ReduceFont(ttf, ' ', '~', "x")
		assert.Error(t, err, name)
	}
	_, err := plot.ReduceFont(whole.Bytes(), 0xe000, 0xe000, "x")
	assert.ErrorContains(t, err, "no glyph")
}
