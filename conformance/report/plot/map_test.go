package plot_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance/report/plot"
)

func table() plot.Table {
	return plot.Table{Title: "A table", Quantity: "share", X: "condition", Y: "layer", Columns: []string{"one", "two"}, Rows: []string{"01", "02", "07"},
		Values: [][]float64{{0, 0.5}, {0.25, math.NaN()}, {1, 0.75}}, Notes: [][]string{{"", ""}, {"", ""}, {"3", ""}}}
}

func histogram() plot.Histogram {
	return plot.Histogram{Title: "A histogram", X: "below", Labels: []string{"0", "2^-3", "2^-2"},
		Series: []plot.Series{{Name: "all", Counts: []int{3, 400, 0}}, {Name: "some", Counts: []int{3, 1, 0}}}}
}

func TestMapAndBarsAsSVG(t *testing.T) {
	for name, tt := range map[string]struct {
		draw func(io.Writer) error
		says []string
	}{
		"map":  {func(w io.Writer) error { return plot.Map(w, plot.SVG, table()) }, []string{"A table", "share", "condition", "layer", "two", "07", "3"}},
		"bars": {func(w io.Writer) error { return plot.Bars(w, plot.SVG, histogram()) }, []string{"A histogram", "below", "2^-3", "all", "some", "rows", "100"}},
	} {
		var b, again bytes.Buffer
		require.NoError(t, tt.draw(&b), name)
		text := textOf(t, b.Bytes())
		for _, want := range tt.says {
			assert.Contains(t, text, want+"\n", name)
		}
		require.NoError(t, tt.draw(&again))
		assert.True(t, bytes.Equal(b.Bytes(), again.Bytes()), "%s: the same figures give the same file", name)
	}
}

func picture(t *testing.T, draw func(io.Writer) error) image.Image {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, draw(&b))
	img, err := png.Decode(&b)
	require.NoError(t, err)
	return img
}

// The place without a value is grey, a sixth of the map.
func TestMapShowsWhatIsMissing(t *testing.T) {
	draw := func(x plot.Table) image.Image {
		return picture(t, func(w io.Writer) error { return plot.Map(w, plot.PNG, x) })
	}
	grey := color.Gray{Y: 160}
	img := draw(table())
	area := img.Bounds().Dx() * img.Bounds().Dy()
	assert.Greater(t, count(img, grey), area/12)
	full := table()
	full.Values[1][1] = 0.5
	assert.Less(t, count(draw(full), grey), area/1000)
}

// A bar of one is seen beside one of hundreds, and a count of 0 has none.
func TestBarsShowTheCounts(t *testing.T) {
	red := color.RGBA{R: 190, G: 40, B: 30, A: 255}
	draw := func(h plot.Histogram) int {
		return count(picture(t, func(w io.Writer) error { return plot.Bars(w, plot.PNG, h) }), red)
	}
	one := draw(histogram())
	h := histogram()
	h.Series[1].Counts = []int{3, 0, 0}
	none := draw(h)
	h.Series[1].Counts = []int{3, 100, 0}
	many := draw(h)
	assert.Greater(t, one, none+500)
	assert.Greater(t, many, one+5000)
}

func TestMapAndBarsRefuse(t *testing.T) {
	for name, change := range map[string]func(*plot.Table){
		"nothing":     func(x *plot.Table) { *x = plot.Table{} },
		"no columns":  func(x *plot.Table) { x.Columns = nil },
		"a short row": func(x *plot.Table) { x.Values[1] = x.Values[1][:1] },
		"few rows":    func(x *plot.Table) { x.Values = x.Values[:2] },
		"few notes":   func(x *plot.Table) { x.Notes = x.Notes[:2] },
		"short notes": func(x *plot.Table) { x.Notes[2] = nil },
	} {
		x := table()
		change(&x)
		assert.ErrorContains(t, plot.Map(io.Discard, plot.SVG, x), "plot: table: ", name)
	}
	for name, change := range map[string]func(*plot.Histogram){
		"nothing":    func(h *plot.Histogram) { *h = plot.Histogram{} },
		"no series":  func(h *plot.Histogram) { h.Series = nil },
		"a range":    func(h *plot.Histogram) { h.Series[1].Counts = h.Series[1].Counts[:2] },
		"a negative": func(h *plot.Histogram) { h.Series[0].Counts[0] = -1 },
	} {
		h := histogram()
		change(&h)
		assert.ErrorContains(t, plot.Bars(io.Discard, plot.SVG, h), "plot: histogram: ", name)
	}
	assert.ErrorContains(t, plot.Map(io.Discard, "gif", table()), `format: got "gif"`)
	assert.Error(t, plot.Bars(failing{}, plot.SVG, histogram()))
}

// Without notes, without a figure, without a single count.
func TestDegenerateMapsAndBars(t *testing.T) {
	x := table()
	x.Notes = nil
	require.NoError(t, plot.Map(io.Discard, plot.SVG, x))
	require.NoError(t, plot.Map(io.Discard, plot.SVG, plot.Table{Columns: []string{"a"}, Rows: []string{"b"}, Values: [][]float64{{math.NaN()}}, Notes: [][]string{{"x"}}}))
	require.NoError(t, plot.Bars(io.Discard, plot.SVG, plot.Histogram{Labels: []string{"a"}, Series: []plot.Series{{Name: "n", Counts: []int{0}}}}))
}

func ExampleBars() {
	err := plot.Bars(io.Discard, plot.SVG, plot.Histogram{Title: "Margins", X: "below", Labels: []string{"2^-8", "2^-7"}, Series: []plot.Series{{Name: "all", Counts: []int{3, 40}}}})
	if err != nil {
		panic(err)
	}
	// Output:
}

// A value in the middle of the scale has a colour: gonum's reversed palettes have
// none there when their number is odd.
func TestMapShowsTheMiddle(t *testing.T) {
	draw := func(middle float64) int {
		x := table()
		x.Values, x.Notes = [][]float64{{0, 0}, {0, middle}, {0, 1}}, nil
		return count(picture(t, func(w io.Writer) error { return plot.Map(w, plot.PNG, x) }), color.White)
	}
	assert.InDelta(t, draw(1), draw(0.5), 2000)
}

// With ends of its own a table of small shares is light, and only a large one dark.
func TestMapWithFixedEnds(t *testing.T) {
	dark := func(value, high float64) int {
		x := table()
		x.Values, x.Notes, x.High = [][]float64{{0, 0}, {0, 0}, {value, value}}, nil, high
		img, n := picture(t, func(w io.Writer) error { return plot.Map(w, plot.PNG, x) }), 0
		for y := range img.Bounds().Dy() {
			for i := range img.Bounds().Dx() * 3 / 4 { // the scale lies beside
				if r, g, b, _ := img.At(i, y).RGBA(); r+g+b < 3*0x4000 {
					n++
				}
			}
		}
		return n
	}
	text := dark(0.05, 1)
	assert.Greater(t, dark(1, 1), text+50000)
	assert.Greater(t, dark(0.05, 0), text+50000)

	x := table()
	x.Low, x.High = 1, 0.5
	assert.ErrorContains(t, plot.Map(io.Discard, plot.SVG, x), "plot: table: colours: got 1 to 0.5")
}
