//go:build browser

package page_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// browserProgram is the browser of the tests: $CHROMIUM, or what is installed.
func browserProgram() (string, error) {
	if p := os.Getenv("CHROMIUM"); p != "" {
		return exec.LookPath(p)
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if p, err := exec.LookPath(name); err == nil {
			return p, nil
		}
	}
	return "", errors.New("no chromium, chromium-browser or google-chrome in PATH: install Debian's package chromium, or set CHROMIUM to a program")
}

// screenshots is where pictures are kept: PLUMBLINE_SCREENSHOTS, or a folder among
// temporary files.
func screenshots() string {
	if dir := os.Getenv("PLUMBLINE_SCREENSHOTS"); dir != "" {
		return dir
	}
	return filepath.Join(os.TempDir(), "plumbline-screenshots")
}

var theBrowser = sync.OnceValues(func() (context.Context, error) {
	program, err := browserProgram()
	if err != nil {
		return nil, err
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.Flag("hide-scrollbars", false))
	if os.Getuid() == 0 {
		opts = append(opts, chromedp.NoSandbox)
	}
	allocator, _ := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, _ := chromedp.NewContext(allocator)
	return ctx, chromedp.Do(ctx)
})

func TestMain(m *testing.M) {
	code := m.Run()
	if ctx, err := theBrowser(); err == nil {
		_ = chromedp.Cancel(ctx)
	}
	os.Exit(code)
}

// tab is a page in the browser, and what it complained of.
type tab struct {
	ctx context.Context
	t   *testing.T
	mu  sync.Mutex
	// complaints are exceptions, console messages of error or warning, and entries of
	// the browser's log; requests are all that was asked for beside the page.
	complaints, requests []string
}

// open loads a page from a file, in a window of some size.
func open(t *testing.T, html []byte, width, height int64) *tab {
	t.Helper()
	browser, err := theBrowser()
	require.NoError(t, err)
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext()) // its own storage
	t.Cleanup(cancel)
	ctx, stop := context.WithTimeout(ctx, 90*time.Second)
	t.Cleanup(stop)
	file := filepath.Join(t.TempDir(), "report.html")
	require.NoError(t, os.WriteFile(file, html, 0o600))
	address := (&url.URL{Scheme: "file", Path: file}).String()
	tb := &tab{ctx: ctx, t: t}
	add := func(list *[]string, format string, args ...any) {
		tb.mu.Lock()
		defer tb.mu.Unlock()
		*list = append(*list, fmt.Sprintf(format, args...))
	}
	require.NoError(t, chromedp.Listen(ctx, func(ev any) {
		switch e := ev.(type) {
		case *runtime.EventExceptionThrown:
			add(&tb.complaints, "exception: %s", e.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			if t := e.Type.String(); t == "error" || t == "warning" || t == "assert" {
				add(&tb.complaints, "console: %s: %d values", t, len(e.Args))
			}
		case *log.EventEntryAdded:
			add(&tb.complaints, "log: %s: %s", e.Entry.Level, e.Entry.Text)
		case *network.EventRequestWillBeSent:
			if u := e.Request.URL; u != address && !strings.HasPrefix(u, "data:") && !strings.HasPrefix(u, address+"#") {
				add(&tb.requests, "%s", u)
			}
		}
	}))
	call(tb, network.Enable, network.EnableParams{})
	call(tb, runtime.Enable, cdp.Empty{})
	call(tb, log.Enable, cdp.Empty{})
	tb.do(chromedp.EmulateViewport(width, height), chromedp.Navigate(address), chromedp.WaitReady(chromedp.CSS("footer")))
	return tb
}

func (tb *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	tb.t.Helper()
	require.NoError(tb.t, chromedp.Do(tb.ctx, actions...))
}

func (tb *tab) click(selector string) {
	tb.t.Helper()
	tb.do(chromedp.Click(chromedp.CSS(selector)))
}

// press focuses an element and types.
func (tb *tab) press(selector, keys string) {
	tb.t.Helper()
	tb.do(chromedp.Focus(chromedp.CSS(selector)), chromedp.KeyEvent(keys))
}

// call sends a command of the protocol.
func call[P, R any](tb *tab, c cdp.Command[P, R], params P) R {
	tb.t.Helper()
	out, err := chromedp.Call(tb.ctx, c, params)
	require.NoError(tb.t, err)
	return out
}

func evaluate[T any](tb *tab, js string) T {
	tb.t.Helper()
	out, err := chromedp.Run(tb.ctx, chromedp.Evaluate[T](js))
	require.NoError(tb.t, err)
	return out
}

// said waits until the page had time to complain.
func (tb *tab) said() (complaints, requests []string) {
	tb.do(chromedp.Sleep(150 * time.Millisecond))
	tb.mu.Lock()
	defer tb.mu.Unlock()
	return tb.complaints, tb.requests
}

func (tb *tab) clean() {
	tb.t.Helper()
	complaints, requests := tb.said()
	assert.Empty(tb.t, complaints)
	assert.Empty(tb.t, requests, "the page asked for something")
}
