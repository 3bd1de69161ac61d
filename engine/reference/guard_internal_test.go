package reference

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGuardEndsAStalledStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		start := time.Now()
		_, err := guard(context.Background(), time.Minute, func(p *progress) (int, error) {
			for range 3 { // three steps of 40 s are no stall
				time.Sleep(40 * time.Second)
				p.step()
			}
			<-release
			return 1, nil
		})
		var stall *StallError
		require.ErrorAs(t, err, &stall)
		require.Equal(t, int64(3), stall.Step)
		require.GreaterOrEqual(t, time.Since(start), 3*time.Minute)
		require.LessOrEqual(t, time.Since(start), 4*time.Minute)
	})
}

func TestGuardHonoursContext(t *testing.T) {
	t.Run("cancelled before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := guard(ctx, time.Hour, func(*progress) (int, error) {
			t.Error("the run was started")
			return 1, nil
		})
		require.ErrorIs(t, err, context.Canceled)
	})
	t.Run("cancelled inside a step that never ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			release := make(chan struct{})
			defer close(release)
			_, err := guard(ctx, time.Hour, func(*progress) (int, error) {
				cancel()
				<-release
				return 1, nil
			})
			require.ErrorIs(t, err, context.Canceled)
		})
	})
	t.Run("an abandoned run ends at its next step", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var stepErr error
			_, err := guard(context.Background(), time.Second, func(p *progress) (int, error) {
				time.Sleep(time.Minute)
				stepErr = p.step()
				return 1, stepErr
			})
			var stall *StallError
			require.ErrorAs(t, err, &stall)
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			require.ErrorIs(t, stepErr, context.Canceled)
		})
	})
}

func TestGuardReturnsTheRunsOutcome(t *testing.T) {
	got, err := guard(context.Background(), time.Hour, func(*progress) (int, error) { return 7, nil })
	require.NoError(t, err)
	require.Equal(t, 7, got)

	boom := errors.New("boom")
	_, err = guard(context.Background(), time.Hour, func(*progress) (int, error) { return 7, boom })
	require.ErrorIs(t, err, boom)

	_, err = guard(context.Background(), time.Hour, func(*progress) (int, error) { panic("shape") })
	require.ErrorContains(t, err, "backend panicked: shape")
}
