//! Until `wire` has them.

use wire::Method;

pub(crate) trait Bit {
    fn bit(self) -> u32;
}
impl Bit for Method {
    fn bit(self) -> u32 {
        1 << self as u32
    }
}

pub(crate) fn http_date(secs: i64) -> [u8; 29] {
    let days = secs.div_euclid(86400);
    let (h, m, s) =
        (secs.rem_euclid(86400) / 3600, secs.rem_euclid(3600) / 60, secs.rem_euclid(60));
    let z = days + 719468;
    let era = z.div_euclid(146097);
    let doe = z - era * 146097;
    let yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let d = doy - (153 * mp + 2) / 5 + 1;
    let mo = if mp < 10 { mp + 3 } else { mp - 9 };
    let y = yoe + era * 400 + i64::from(mo <= 2);
    let wd = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][days.rem_euclid(7) as usize];
    let mn = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        [mo as usize - 1];
    let text = format!("{wd}, {d:02} {mn} {y:04} {h:02}:{m:02}:{s:02} GMT");
    text.as_bytes().try_into().unwrap_or([b' '; 29])
}

pub(crate) fn status_line(status: u16) -> &'static [u8] {
    match status {
        200 => b"200 OK",
        301 => b"301 Moved Permanently",
        400 => b"400 Bad Request",
        403 => b"403 Forbidden",
        404 => b"404 Not Found",
        405 => b"405 Not Allowed",
        _ => b"500 Internal Server Error",
    }
}
