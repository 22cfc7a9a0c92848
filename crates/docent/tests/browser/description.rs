//! The page with the API description.

use thirtyfour::prelude::*;

use crate::book::Book;
use crate::browser::browse;

#[tokio::test]
async fn the_api_page_describes_routes_and_can_try_them() {
    let library = Book::new().serve();
    browse("docs", async |browser| {
        browser.open(&format!("{}/docs/", library.served.url)).await;
        let operation = By::Css("[id$='-status'] .opblock-summary-control, [id$='-status'] .opblock-summary");
        browser.driver.query(operation).and_clickable().first().await.unwrap().click().await.unwrap();
        let execute = browser.driver.query(By::Css("button.execute")).and_clickable().first().await.unwrap();
        execute.click().await.unwrap();
        let status =
            browser.driver.query(By::Css(".live-responses-table .response-col_status")).and_displayed();
        status.with_text("200").first().await.unwrap();
        let body = browser
            .driver
            .query(By::Css(".live-responses-table"))
            .first()
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        assert!(body.contains("Walking machines"), "{body}");
        browser.picture("docs").await;
    })
    .await;
}
