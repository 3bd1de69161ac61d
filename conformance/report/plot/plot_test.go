package plot_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance/report/plot"
)

func grid() plot.Grid {
	return plot.Grid{Title: "A title", Quantity: "nRMSE", Steps: []int{1, 5, 10, 30}, Limit: 0.15, Values: [][]float64{
		{0.01, 0.02, 0.02, 0.03}, {0.1, 0.2, math.NaN(), 0.3}, {0.05, 0.05, 0.06, 0.07}}}
}

var kinds = map[string]func(io.Writer, plot.Format, plot.Grid) error{"lines": plot.Lines, "heat map": plot.HeatMap}

// textOf is the text in an SVG, which has to be well-formed.
func textOf(t *testing.T, svg []byte) string {
	t.Helper()
	var out strings.Builder
	d := xml.NewDecoder(bytes.NewReader(svg))
	inText := false
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out.String()
		}
		require.NoError(t, err)
		switch x := tok.(type) {
		case xml.StartElement:
			inText = x.Name.Local == "text"
		case xml.EndElement:
			inText = false
		case xml.CharData:
			if inText {
				out.Write(x)
				out.WriteByte('\n')
			}
		}
	}
}

func TestSVG(t *testing.T) {
	for name, draw := range kinds {
		var b, again bytes.Buffer
		require.NoError(t, draw(&b, plot.SVG, grid()))
		text := textOf(t, b.Bytes())
		for _, want := range []string{"A title", "nRMSE", "decode step", "30"} {
			assert.Contains(t, text, want, name)
		}
		assert.Equal(t, name == "lines", strings.Contains(text, "limit 0.15"), name)
		assert.Contains(t, b.String(), "@font-face", "the fonts are inside")
		require.NoError(t, draw(&again, plot.SVG, grid()))
		assert.True(t, bytes.Equal(b.Bytes(), again.Bytes()), "%s: the same figures give the same file", name)
	}
}

func decoded(t *testing.T, draw func(io.Writer, plot.Format, plot.Grid) error, g plot.Grid) image.Image {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, draw(&b, plot.PNG, g))
	img, err := png.Decode(&b)
	require.NoError(t, err)
	return img
}

// count is how many pixels have a colour.
func count(img image.Image, want color.Color) int {
	n := 0
	r, g, b, _ := want.RGBA()
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			r2, g2, b2, _ := img.At(x, y).RGBA()
			if r == r2 && g == g2 && b == b2 {
				n++
			}
		}
	}
	return n
}

// The place without a value is grey, a twelfth of the map; an infinity is black.
func TestHeatMapShowsWhatIsMissing(t *testing.T) {
	grey := color.Gray{Y: 160}
	img := decoded(t, plot.HeatMap, grid())
	area := img.Bounds().Dx() * img.Bounds().Dy()
	assert.Greater(t, count(img, grey), area/30)
	g := grid()
	g.Values[1][2] = 0.1
	assert.Less(t, count(decoded(t, plot.HeatMap, g), grey), area/1000)
	black := count(decoded(t, plot.HeatMap, g), color.Black)
	g.Values[1][2] = math.Inf(1)
	assert.Greater(t, count(decoded(t, plot.HeatMap, g), color.Black), black+area/40)
}

// Lines move with their values.
func TestLinesShowTheValues(t *testing.T) {
	g := grid()
	before := decoded(t, plot.Lines, g)
	g.Values[0][3] = 0.2
	after := decoded(t, plot.Lines, g)
	differs := 0
	for y := range before.Bounds().Dy() {
		for x := range before.Bounds().Dx() {
			if before.At(x, y) != after.At(x, y) {
				differs++
			}
		}
	}
	assert.Greater(t, differs, 500)
}

func TestDegenerateGrids(t *testing.T) {
	nan := math.NaN()
	for name, g := range map[string]plot.Grid{
		"one value":       {Steps: []int{1}, Values: [][]float64{{0.1}}},
		"all zero":        {Steps: []int{1, 2}, Values: [][]float64{{0, 0}, {0, 0}}},
		"all NaN":         {Steps: []int{1, 2}, Values: [][]float64{{nan, nan}, {nan, nan}}, Limit: 0.15},
		"all infinite":    {Steps: []int{1, 2}, Values: [][]float64{{math.Inf(1), math.Inf(1)}}},
		"all equal":       {Steps: []int{1, 2}, Values: [][]float64{{0.1, 0.1}, {0.1, 0.1}}},
		"ten decades":     {Steps: []int{1, 2}, Values: [][]float64{{1e-9, 10}}},
		"300 positions":   {Steps: make([]int, 300), Values: [][]float64{make([]float64, 300)}},
		"one layer, gaps": {Steps: []int{1, 2, 3, 4}, Values: [][]float64{{0.1, nan, 0.2, nan}}},
	} {
		for kind, draw := range kinds {
			for _, f := range []plot.Format{plot.SVG, plot.PNG} {
				if g.Steps[len(g.Steps)-1] == 0 {
					for i := range g.Steps {
						g.Steps[i] = i + 1
					}
				}
				var b bytes.Buffer
				require.NoError(t, draw(&b, f, g), "%s: %s", name, kind)
				require.Positive(t, b.Len())
			}
		}
	}
}

func TestRefuses(t *testing.T) {
	for name, g := range map[string]plot.Grid{
		"nothing":      {},
		"no positions": {Values: [][]float64{{}}},
		"a short row":  {Steps: []int{1, 2}, Values: [][]float64{{1, 2}, {1}}},
	} {
		for kind, draw := range kinds {
			assert.ErrorContains(t, draw(io.Discard, plot.SVG, g), "plot: grid: ", "%s: %s", name, kind)
		}
	}
	assert.ErrorContains(t, plot.Lines(io.Discard, "gif", grid()), `format: got "gif"`)
	assert.Error(t, plot.Lines(failing{}, plot.SVG, grid()))
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }

func ExampleHeatMap() {
	var b bytes.Buffer
	err := plot.HeatMap(&b, plot.SVG, plot.Grid{Title: "nRMSE of sdpa_out by layer", Quantity: "nRMSE", Steps: []int{1, 5}, Values: [][]float64{{0.1, 0.2}, {0.1, 0.3}}})
	if err != nil {
		panic(err)
	}
	// Output:
}

// A limit has a tick where none is near.
func TestLimitsHaveTicks(t *testing.T) {
	lines := func(median, worst float64) []string {
		var b bytes.Buffer
		require.NoError(t, plot.ByDepth(&b, plot.SVG, plot.Depth{Median: []float64{1, 1.25, 1}, Worst: []float64{1, 1.5, 3.5}, MedianLimit: median, WorstLimit: worst, Bad: -1}))
		return strings.Split(textOf(t, b.Bytes()), "\n")
	}
	assert.Contains(t, lines(2, 3.25), "3.25")
	assert.NotContains(t, lines(2.04, 3.25), "2.04", "it would stand on the one of 2")
	assert.Equal(t, 1, strings.Count(strings.Join(lines(0, 0), "\n"), "0"), "the row, and no limit")
}
